package httpguard

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/belaygo/belay/once"
)

// printVersion is that of the default Print.
const printVersion = 1

// requestOf names the request.
func (c *Config) requestOf(r *http.Request, key, principal string, body []byte) once.Request {
	return once.Request{
		Operation: nameOf(c.Operation(r)),
		Scope:     []string{principal},
		ID:        key,
		Print:     once.PrintOf(printVersion, c.Print(r, body)...),
	}
}

// operation is what a request asks for, as the mux has it.
func operation(r *http.Request) string {
	if r.Pattern != "" {
		return r.Pattern
	}
	return r.Method + " " + r.URL.Path
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

// contents are what a repeat must have in common with the request.
func contents(r *http.Request, body []byte) [][]byte {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		media = r.Header.Get("Content-Type")
	}
	return [][]byte{[]byte(r.Method), []byte(r.URL.EscapedPath()), []byte(r.URL.RawQuery), []byte(media), body}
}

var (
	errLongBody = errors.New("httpguard: the body is too long")
	errBody     = errors.New("httpguard: the body can't be read")
)

// readBody reads the whole body of a request.
func readBody(w http.ResponseWriter, r *http.Request, limit int) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(limit)))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, errLongBody
	}
	if err != nil {
		return nil, errors.Join(errBody, err)
	}
	return body, nil
}
