package httpguard

import (
	"context"
	"errors"
	"net/http"

	"github.com/belaygo/belay/guard"
)

// clientClosedRequest is the status of a request whose client has left before its
// answer.
const clientClosedRequest = 499

// Status returns the status of the answer to a request whose operation ended with err, for
// handlers that call Do, Apply or Once themselves. [Error] writes the whole answer.
//
//   - 200 for nil and guard.ErrDuplicate: done, now or before. A handler that reads what the
//     first one wrote may find that the request was a different one, which is a 409.
//   - 409 for guard.ErrBusy and guard.ErrIntercepted, with Retry-After: a retry is safe.
//   - 409 for guard.ErrStale, guard.ErrExists and a *dbguard.ConflictError.
//   - 422 for guard.ErrMismatch.
//   - 499 if the client has left. It is for logs and metrics, as no client gets it; nginx logs it, too.
//   - 503 for guard.ErrLost, guard.ErrUnavailable and guard.ErrClosed, for a deadline of the
//     request that has passed, and for an error of the database that may be over a moment later
//     (guard.Transient), with Retry-After.
//   - 504 for guard.ErrUnknown: the operation may have taken effect. Look before you retry.
//   - 503 for guard.ErrPending, with Retry-After: the outcome of a guard.Call is open, and a repeat with
//     the same content goes on. 500 if it is undecided: a repeat would find nothing out.
//   - 400 for a request without an Idempotency-Key, as [RequestOf] found it.
//   - 500 for anything else: handle the operation's own errors before this function.
func Status(err error) int {
	if p, ok := errors.AsType[*guard.PendingError](err); ok && p.Undecided { // whatever its cause is
		return http.StatusInternalServerError
	}
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
	if guard.Transient(err) {
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// statuses are the statuses of errors. The first that fits decides: an error with the
// outcome of the operation comes before the reason for it.
var statuses = []struct {
	err    error
	status int
}{
	{guard.ErrPending, http.StatusServiceUnavailable},
	{errNoKey, http.StatusBadRequest},
	{errBadKey, http.StatusBadRequest},
	{guard.ErrIntercepted, http.StatusConflict},
	{guard.ErrUnknown, http.StatusGatewayTimeout},
	{guard.ErrLost, http.StatusServiceUnavailable},
	{guard.ErrDuplicate, http.StatusOK},
	{guard.ErrStale, http.StatusConflict},
	{guard.ErrMismatch, http.StatusUnprocessableEntity},
	{context.Canceled, clientClosedRequest},
	{guard.ErrBusy, http.StatusConflict},
	{guard.ErrUnavailable, http.StatusServiceUnavailable},
	{guard.ErrClosed, http.StatusServiceUnavailable},
	{context.DeadlineExceeded, http.StatusServiceUnavailable},
}
