package httpguard

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
)

// A problem is a problem detail (RFC 9457), the client's view of an error.
type problem struct {
	Type   string `json:"type,omitempty"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// problems are the errors that a client can act on, or that no repeat cures. The first that fits
// decides. All others are 503: a retry is safe.
var problems = []struct {
	err                  error
	status               int
	fragment, title, say string
}{
	{errNoKey, http.StatusBadRequest, "missing", "Idempotency-Key is missing", "This request needs a header Idempotency-Key, with the same value when it is sent again."},
	{errBadKey, http.StatusBadRequest, "invalid", "Idempotency-Key is not valid", "It is to be one string of 1 to 255 printable ASCII characters."},
	{errKeys, http.StatusBadRequest, "invalid", "The request is not valid", ""},
	{errLongBody, http.StatusRequestEntityTooLarge, "long", "The body is too long", ""},
	{errRead, http.StatusInternalServerError, "internal", "Internal error", ""},
	{errBody, http.StatusBadRequest, "invalid", "The body can't be read", ""},
	{errPrincipal, http.StatusInternalServerError, "internal", "Internal error", ""},
	{guard.ErrTxControl, http.StatusInternalServerError, "internal", "Internal error", ""},
	{guard.ErrBusy, http.StatusConflict, "busy", "The request is being served", "Send it again later, with the same key."},
	{guard.ErrMismatch, http.StatusUnprocessableEntity, "mismatch", "Idempotency-Key was used for another request", "A new request needs a new key."},
	{guard.ErrExists, http.StatusConflict, "exists", "The request conflicts with what is there", "Nothing was changed."},
	{guard.ErrDuplicate, http.StatusConflict, forgotten, "The request was served before", "Its answer is no longer kept."},
	{guard.ErrNested, http.StatusInternalServerError, "internal", "Internal error", ""},
	{lock.ErrInvalidKey, http.StatusInternalServerError, "internal", "Internal error", ""},
	{guard.ErrAnswer, http.StatusInternalServerError, "internal", "Internal error", ""},
}

// forgotten is the fragment of a request that has taken effect and has no answer.
const forgotten = "forgotten"

// problemOf returns the problem that an error is to the client, and its fragment.
func problemOf(err error) (p problem, fragment string) {
	for _, known := range problems {
		if errors.Is(err, known.err) {
			return problem{Title: known.title, Status: known.status, Detail: known.say}, known.fragment
		}
	}
	if exists(err) {
		return problemOf(guard.ErrExists)
	}
	return problem{Title: "Not available", Status: http.StatusServiceUnavailable, Detail: sendAgain}, "unavailable"
}

// fail answers for an error, and logs the details that the answer leaves out.
func (e *exchange) fail(err error) {
	p, fragment := problemOf(err)
	if fragment == forgotten && isMessage(e.r.Header) { // which takes an effect, and no answer
		e.w.Header().Set("Idempotent-Replayed", "true")
		e.w.WriteHeader(http.StatusNoContent)
		return
	}
	if e.cfg.Docs != "" {
		p.Type = e.cfg.Docs + "#" + fragment
	}
	if p.Status >= http.StatusInternalServerError {
		e.cfg.Logger.Error("a guarded request has failed", "request", e.request.Key(), "status", p.Status, "error", err)
	}
	p.send(e.w, fragment == "busy" || fragment == "unavailable")
}

// send writes a problem as the answer. If again is set, it adds a Retry-After of a second.
func (p problem) send(w http.ResponseWriter, again bool) {
	h := w.Header()
	if again {
		h.Set("Retry-After", "1")
	}
	h.Del("Content-Length") // if the handler has set it for another answer
	h.Set("Content-Type", "application/problem+json")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may have left
}

// exists reports whether a row that no Keys names was there. A stale one may be read again by a repeat.
func exists(err error) bool {
	c, ok := errors.AsType[*dbguard.ConflictError](err)
	return ok && guard.ResultOf(err) == "conflict" && c.Kind == dbguard.Duplicate
}
