package httpguard

import (
	"net/http"

	"github.com/belaygo/belay/once"
)

// RequestOf names a request by its Idempotency-Key, for handlers that serve it outside of the
// middleware, as by a guard.Call. operation is the Name of that Call, principal identifies the caller,
// and body is the whole body. A repeat must have the same method, path, query, media type and body.
// Without a valid key it returns an error for which [Error] answers 400.
func RequestOf(r *http.Request, operation, principal string, body []byte) (once.Request, error) {
	key, err := keyOf(r.Header)
	if err != nil {
		return once.Request{}, err
	}
	parts, err := contents(r, body)
	if err != nil {
		return once.Request{}, err
	}
	request := once.Request{Operation: operation, Scope: []string{principal}, ID: key, Print: once.PrintOf(printVersion, parts...)}
	return request, request.Validate()
}
