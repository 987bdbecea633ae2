package httpguard

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/belaygo/belay/guard"
)

// A recorder keeps what a handler answers. It has no Unwrap: nothing reaches the client
// past it.
type recorder struct {
	out    http.ResponseWriter // for 1xx, which pass at once
	before http.Header         // that others have set
	header http.Header
	status int
	body   bytes.Buffer
	limit  int
	err    error
}

func newRecorder(w http.ResponseWriter, limit int) *recorder {
	return &recorder{out: w, before: w.Header().Clone(), header: w.Header().Clone(), limit: limit}
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter. As in net/http the first final status counts.
func (r *recorder) WriteHeader(status int) {
	switch {
	case r.status != 0:
	case status == http.StatusSwitchingProtocols:
		r.err = http.ErrNotSupported
	case status >= 100 && status < 200:
		maps.Copy(r.out.Header(), r.header)
		r.out.WriteHeader(status)
	default:
		r.status = status
	}
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	switch {
	case r.err != nil:
		return 0, r.err
	case !hasBody(r.status):
		return 0, http.ErrBodyNotAllowed
	case r.body.Len()+len(p) > r.limit:
		r.err = fmt.Errorf("%w: more than %d bytes: see httpguard.Config.MaxAnswer", guard.ErrAnswer, r.limit)
		return 0, r.err
	}
	return r.body.Write(p)
}

func hasBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// Flush implements http.Flusher, which some frameworks rely on. It does nothing.
func (r *recorder) Flush() {}

// FlushError is what http.ResponseController calls.
func (r *recorder) FlushError() error { return http.ErrNotSupported }

// An answer is what a handler has answered. A header without values is one that the handler
// has removed.
type answer struct {
	Status int                 `json:"status"`
	Header map[string][]string `json:"header,omitempty"`
	Body   []byte              `json:"body,omitempty"`
}

// answer returns what the handler has answered, and of its headers those that keep says.
func (r *recorder) answer(keep func(name string) bool) answer {
	a := answer{Status: r.status, Body: r.body.Bytes()}
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	for name, values := range r.header {
		if !slices.Equal(values, r.before[name]) && keep(name) {
			a.set(name, values)
		}
	}
	for name := range r.before {
		if _, still := r.header[name]; !still && keep(name) {
			a.set(name, nil)
		}
	}
	return a
}

func (a *answer) set(name string, values []string) {
	if a.Header == nil {
		a.Header = make(map[string][]string)
	}
	a.Header[name] = values
}

// send sends the answer.
func (a *answer) send(w http.ResponseWriter) {
	for name, values := range a.Header {
		if len(values) == 0 {
			w.Header().Del(name)
			continue
		}
		w.Header()[name] = values
	}
	w.WriteHeader(a.Status)
	if hasBody(a.Status) {
		_, _ = w.Write(a.Body)
	}
}

// passing are headers that are of one message, not of the answer.
var passing = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true, "Content-Length": true, "Date": true, "Set-Cookie": true,
}
