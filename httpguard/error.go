package httpguard

import (
	"errors"
	"net/http"

	"github.com/belaygo/belay/guard"
)

const sendAgain = "Nothing was changed. Send the request again later."

// Error answers a request whose operation ended with err, with the status that [Status]
// returns, for handlers that call Do, Apply or Once themselves and have dealt with the errors
// of their own. 409 and 503 have Retry-After where asking again is safe. The body is a
// problem detail (RFC 9457) for clients. It has no text of err, which may name a table or a
// key: log err where that matters.
//
// For nil and guard.ErrDuplicate, which are no failures, it answers 200 without a body.
func Error(w http.ResponseWriter, err error) {
	status := Status(err)
	if status == http.StatusOK {
		w.WriteHeader(status)
		return
	}
	p := problem{Title: http.StatusText(status), Status: status}
	again := status == http.StatusServiceUnavailable || errors.Is(err, guard.ErrIntercepted) || errors.Is(err, guard.ErrBusy)
	switch {
	case status == StatusClientClosedRequest:
		p.Title, again = "Client closed request", false
	case status == http.StatusGatewayTimeout:
		p.Detail, again = "The request may have taken effect. Look before sending it again.", false
	case again:
		p.Detail = sendAgain
	}
	p.send(w, again)
}
