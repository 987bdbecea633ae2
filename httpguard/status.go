package httpguard

import (
	"context"
	"errors"
	"net/http"

	"github.com/belaygo/belay/guard"
)

// StatusClientClosedRequest is the status of a request whose client has left before its
// answer. Nobody gets it, but logs and metrics do: it is no error of the server. Web servers
// such as nginx log the same number.
const StatusClientClosedRequest = 499

// Status returns the status of the answer to a request whose operation ended with err, for
// handlers that call Do, Apply or Once themselves. [Error] writes the whole answer.
//
//   - 200 for nil and guard.ErrDuplicate: done, now or before. A handler that reads what the
//     first one wrote may find that it asked for something else, which is a 409.
//   - 409 for guard.ErrBusy and guard.ErrIntercepted, with Retry-After: asking again is safe.
//   - 409 for guard.ErrStale and a *dbguard.ConflictError.
//   - 422 for guard.ErrMismatch.
//   - 499, StatusClientClosedRequest, if the client has left.
//   - 503 for guard.ErrLost, guard.ErrUnavailable and guard.ErrClosed, and for a deadline of
//     the request that has passed, with Retry-After.
//   - 504 for guard.ErrUnknown: the operation may have taken effect. Look before asking again.
//   - 500 for anything else: errors of the operation's own come before this function.
func Status(err error) int {
	for _, known := range statuses {
		if errors.Is(err, known.err) {
			return known.status
		}
	}
	switch guard.ResultOf(err) {
	case "done":
		return http.StatusOK
	case "conflict":
		return http.StatusConflict
	}
	return http.StatusInternalServerError
}

// statuses are those of errors. The first that fits decides: an error that says what became
// of the operation comes before the reason for it.
var statuses = []struct {
	err    error
	status int
}{
	{guard.ErrIntercepted, http.StatusConflict},
	{guard.ErrUnknown, http.StatusGatewayTimeout},
	{guard.ErrLost, http.StatusServiceUnavailable},
	{guard.ErrDuplicate, http.StatusOK},
	{guard.ErrStale, http.StatusConflict},
	{guard.ErrMismatch, http.StatusUnprocessableEntity},
	{context.Canceled, StatusClientClosedRequest},
	{guard.ErrBusy, http.StatusConflict},
	{guard.ErrUnavailable, http.StatusServiceUnavailable},
	{guard.ErrClosed, http.StatusServiceUnavailable},
	{context.DeadlineExceeded, http.StatusServiceUnavailable},
}
