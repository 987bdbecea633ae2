package httpguard

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// An answer is the answer of a handler. Trailers are headers whose names have
// http.TrailerPrefix.
type answer struct {
	Status int `json:"status"`
	// Header has nil for a header that the handler has removed. No values mean that it is
	// there without one, so that net/http does not add its own.
	Header map[string]values `json:"header,omitempty"`
	Body   []byte            `json:"body,omitempty"`
}

// answer returns the handler's answer, with those of its headers for which keep is true.
func (r *recorder) answer(keep func(name string) bool) answer {
	a := answer{Status: r.status, Header: make(map[string]values), Body: r.body.Bytes()}
	for name, list := range r.sent {
		before, there := r.before[name]
		if (!there || !slices.Equal(list, before)) && keep(nameOfHeader(name)) {
			a.Header[name] = append(values{}, list...)
		}
	}
	for name := range r.before {
		if _, still := r.sent[name]; !still && keep(nameOfHeader(name)) {
			a.Header[name] = nil
		}
	}
	return a
}

// nameOfHeader returns the name of a header or trailer however the handler has spelled it.
func nameOfHeader(name string) string {
	return http.CanonicalHeaderKey(strings.TrimPrefix(name, http.TrailerPrefix))
}

func everyHeader(string) bool { return true }

// send sends the answer.
func (a *answer) send(w http.ResponseWriter) {
	h := w.Header()
	for name, list := range a.Header {
		if list == nil {
			delete(h, name)
			continue
		}
		h[name] = list
	}
	w.WriteHeader(a.Status)
	if hasBody(a.Status) {
		_, _ = w.Write(a.Body)
	}
}

// sendNow sends the answer, so that the client has all of it while the handler of w
// continues. If w cannot be flushed, the answer comes with the end of its handler.
func (a *answer) sendNow(w http.ResponseWriter) {
	if hasBody(a.Status) && !a.framed(w.Header()) {
		w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	a.send(w)
	_ = http.NewResponseController(w).Flush()
}

// framed reports whether the end of the answer does not come with a length: it has one already,
// trailers come behind it, or others encode it.
func (a *answer) framed(outer http.Header) bool {
	for _, name := range []string{"Content-Length", "Transfer-Encoding", "Trailer"} {
		if a.Header[name] != nil || outer[name] != nil {
			return true
		}
	}
	for name := range a.Header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			return true
		}
	}
	return outer["Content-Encoding"] != nil
}

// passing are headers that are of one message, not of the answer.
var passing = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true,
	"Transfer-Encoding": true, "Upgrade": true, "Date": true, "Set-Cookie": true,
}
