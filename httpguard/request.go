package httpguard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/belaygo/belay/once"
)

// named returns the request with its name and print. Its body has been read.
func (e *exchange) named(key, principal string) (once.Request, error) {
	parts, err := e.parts()
	return once.Request{
		Operation: nameOf(e.cfg.Operation(e.copy(e.r.Context()))),
		Scope:     []string{principal},
		ID:        key,
		Print:     once.PrintOf(printVersion, parts...),
	}, err
}

// parts returns those of the request's Print.
func (e *exchange) parts() ([][]byte, error) {
	if e.cfg.Print != nil {
		return e.cfg.Print(e.copy(e.r.Context()), e.body), nil
	}
	if isMessage(e.r.Header) {
		return contentsOfMessage(e.r), nil
	}
	return contents(e.r, e.body)
}

// copy returns a copy of the request with an unread body, and without forms that others have
// parsed since it came. Who parses one of the copy adds to its own values.
func (e *exchange) copy(ctx context.Context) *http.Request {
	r := e.r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(e.body))
	r.Form, r.PostForm = url.Values(http.Header(r.Form).Clone()), url.Values(http.Header(r.PostForm).Clone())
	e.copies = append(e.copies, r)
	return r
}

// removeFiles removes those of the forms that were parsed of copies. net/http does so for its own
// request, and does not know them.
func (e *exchange) removeFiles() {
	for _, r := range e.copies {
		if r.MultipartForm != nil && r.MultipartForm != e.r.MultipartForm {
			_ = r.MultipartForm.RemoveAll()
		}
	}
}

// operation returns the name of a request's operation: the mux's pattern, and where the
// mux is mounted.
func operation(r *http.Request) string {
	asked := askedFor(r).EscapedPath()
	if r.Pattern == "" {
		return r.Method + " " + asked
	}
	if mount, ok := strings.CutSuffix(asked, r.URL.EscapedPath()); ok && mount != "" {
		return mount + " " + r.Pattern
	}
	return r.Pattern
}

// nameOf makes any text the name of an operation: legible, and different from that of any
// other text.
func nameOf(operation string) string {
	const legible = 40
	sum := sha256.Sum256([]byte(operation))
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, operation)
	return strings.Trim(name[:min(len(name), legible)], "-") + "." + hex.EncodeToString(sum[:8])
}

var (
	errLongBody = errors.New("httpguard: the body is too long")
	errBody     = errors.New("httpguard: the body can't be read")
	// errRead is returned if a middleware leaves nothing that distinguishes requests.
	errRead = errors.New("httpguard: the body was read before the Guard got it: put the Guard outside of what reads it, or set Request.Body anew there")
)

// readBody reads the whole body of a request. Of one that was read before, a form is left, or
// it is an error.
func readBody(w http.ResponseWriter, r *http.Request, limit int) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(limit)))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, errLongBody
	}
	closed := errors.Is(err, http.ErrBodyReadAfterClose)
	if err != nil && !closed {
		return nil, errors.Join(errBody, err)
	}
	if !isParsed(r) && (closed || isShort(r, body)) {
		return nil, errRead
	}
	return body, nil
}

// isShort reports whether a body is shorter than its client has sent it. A decoded one may be
// shorter, but it is empty only if it was read.
func isShort(r *http.Request, body []byte) bool {
	return int64(len(body)) < r.ContentLength && (len(body) == 0 || !mayBeDecoded(r))
}

// mayBeDecoded reports whether a middleware may have decoded the body. It has left the header with
// the encoding, or has removed that with the length, which the server of net/http leaves there.
func mayBeDecoded(r *http.Request) bool {
	if r.Header.Get("Content-Encoding") != "" {
		return true
	}
	return r.Context().Value(http.ServerContextKey) != nil && r.Header.Get("Content-Length") == ""
}
