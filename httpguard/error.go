package httpguard

import (
	"errors"
	"net/http"

	"github.com/belaygo/belay/guard"
)

// sendAgain does not say that nothing was changed: an earlier request with the key may have reserved, and
// charge now, by a guard.Call.
const sendAgain = "Send the request again later, with the same key."

// Error writes the whole answer to a request whose operation ended with err. It is for handlers
// that call Do, Apply or Once themselves; they must handle their own errors before. The status is
// that of [Status]. A 409 or 503 has Retry-After if it is safe to send the request again. The body
// is a problem detail (RFC 9457). It does not contain the text of err, which may name a table or a
// key: log err if you need it.
//
// For nil and guard.ErrDuplicate, which are no failures, Error writes 200 and no body.
func Error(w http.ResponseWriter, err error) {
	status := Status(err)
	if status == http.StatusOK {
		w.WriteHeader(status)
		return
	}
	p := problem{Title: http.StatusText(status), Status: status}
	again := status == http.StatusServiceUnavailable || errors.Is(err, guard.ErrIntercepted) || errors.Is(err, guard.ErrBusy)
	switch {
	case status == clientClosedRequest:
		p.Title, again = "Client closed request", false
	case status == http.StatusGatewayTimeout:
		p.Detail, again = "The request may have taken effect. Look before sending it again.", false
	case errors.Is(err, guard.ErrPending) && status == http.StatusServiceUnavailable:
		p.Detail = "The outcome is open. Send the request again later, with the same key."
	case errors.Is(err, guard.ErrPending):
		p.Detail, again = "The outcome is open, and people look into it. Do not make the request under another key.", false
	case again:
		p.Detail = sendAgain
	}
	p.send(w, again)
}
