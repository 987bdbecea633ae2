package httpguard

import (
	"bytes"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/belaygo/belay/guard"
)

// A recorder keeps the answer of a handler, and treats the handler as net/http does. Nothing
// reaches the client before the transaction has ended: it has no Unwrap, and keeps no
// informational responses.
type recorder struct {
	before  http.Header // that others have set
	header  http.Header // the handler's, which it may change until its end
	sent    http.Header // as they were when the status was set, and trailers
	status  int
	length  int64 // that the handler has declared, or -1
	written int64 // bytes by the handler, with those that do not fit
	body    bytes.Buffer
	limit   int
	err     error // why the answer cannot be sent
}

func newRecorder(before http.Header, limit int) *recorder {
	return &recorder{before: before.Clone(), header: before.Clone(), limit: limit}
}

// Header implements http.ResponseWriter. As in net/http, changes behind the status are of
// trailers, or of nothing.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter. As in net/http, the first final status counts,
// and it panics if that is invalid.
func (r *recorder) WriteHeader(status int) {
	switch {
	case r.status != 0:
	case status < 100 || status > 999:
		panic(fmt.Sprintf("httpguard: invalid WriteHeader code %d", status))
	case status == http.StatusSwitchingProtocols:
		r.err = fmt.Errorf("%w: status 101: %w", guard.ErrAnswer, http.ErrNotSupported)
	case status >= 200:
		r.status, r.sent = status, r.header.Clone()
		if !hasBody(status) {
			r.sent.Del("Content-Length")
		}
		r.length = declared(r.sent)
	}
}

// declared returns the length in the headers, or -1. It removes an invalid one.
func declared(h http.Header) int64 {
	text := h.Get("Content-Length")
	length, err := strconv.ParseInt(text, 10, 64)
	if err == nil && length >= 0 {
		return length
	}
	if text != "" {
		h.Del("Content-Length")
	}
	return -1
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	switch {
	case r.err != nil:
		return 0, r.err
	case len(p) == 0:
		return 0, nil
	case !hasBody(r.status):
		return 0, http.ErrBodyNotAllowed
	}
	if r.written += int64(len(p)); r.length >= 0 && r.written > r.length {
		return 0, http.ErrContentLength
	}
	if r.body.Len()+len(p) > r.limit {
		r.err = fmt.Errorf("%w: more than %d bytes: see httpguard.Config.MaxAnswer", guard.ErrAnswer, r.limit)
		return 0, r.err
	}
	return r.body.Write(p)
}

// WriteString implements io.StringWriter, as the writers of net/http do.
func (r *recorder) WriteString(s string) (int, error) { return r.Write([]byte(s)) }

func hasBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// Flush implements http.Flusher, which some frameworks rely on. As in net/http, it sets the
// status; it sends nothing.
func (r *recorder) Flush() { r.WriteHeader(http.StatusOK) }

// FlushError is called by http.ResponseController.
func (r *recorder) FlushError() error { return http.ErrNotSupported }

// finish ends the answer to a request with that method. It returns an error if the answer
// cannot be sent.
func (r *recorder) finish(method string) error {
	r.WriteHeader(http.StatusOK)
	if r.err != nil {
		return r.err
	}
	got := int64(r.body.Len())
	if r.length >= 0 && r.length != got && method != http.MethodHead {
		return fmt.Errorf("%w: its Content-Length is %d, and its body has %d bytes", guard.ErrAnswer, r.length, got)
	}
	r.addTrailers()
	return nil
}

// addTrailers adds the handler's trailers, announced or not, under names with
// http.TrailerPrefix.
func (r *recorder) addTrailers() {
	for name, values := range r.header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			r.sent[name] = values
		}
	}
	for _, list := range r.sent["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			name = http.CanonicalHeaderKey(textproto.TrimString(name))
			if values, ok := r.header[name]; ok {
				r.sent[http.TrailerPrefix+name] = values
			}
		}
	}
}
