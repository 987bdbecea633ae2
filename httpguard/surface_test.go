package httpguard_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/httpguard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
)

// A seen is all that a client sees of an answer.
type seen struct {
	hints   []int // statuses of the informational responses
	status  int   // 0 = the connection was cut
	header  http.Header
	body    string
	trailer http.Header
	cut     bool // within the body
}

// look sends a request, and never fails.
func look(t *testing.T, server *httptest.Server, r *http.Request) (s seen) {
	t.Helper()
	trace := &httptrace.ClientTrace{Got1xxResponse: func(status int, _ textproto.MIMEHeader) error {
		s.hints = append(s.hints, status)
		return nil
	}}
	client := *server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil {
		return s
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	res.Header.Del("Date")
	maps.DeleteFunc(res.Trailer, func(_ string, values []string) bool { return values == nil }) // only announced
	s.status, s.header, s.body, s.trailer, s.cut = res.StatusCode, res.Header, string(all), res.Trailer, err != nil
	return s
}

// without returns the answer without some headers and trailers.
func (s seen) without(names ...string) seen {
	s.header, s.trailer = s.header.Clone(), s.trailer.Clone()
	for _, name := range names {
		s.header.Del(name)
		s.trailer.Del(name)
	}
	return s
}

func (s seen) String() string {
	return fmt.Sprintf("%d %v %q, trailers %v, cut %t, after %v", s.status, s.header, s.body, s.trailer, s.cut, s.hints)
}

func same(a, b seen) bool {
	equal := func(a, b http.Header) bool { return maps.EqualFunc(a, b, slices.Equal) }
	return a.status == b.status && a.body == b.body && a.cut == b.cut && equal(a.header, b.header) && equal(a.trailer, b.trailer)
}

// stand has handlers of a table under a guard, and without one, over both protocols.
type stand struct {
	*site

	servers map[string]*httptest.Server
}

// spend takes a cent in the transaction of a guarded request.
func spend(t *testing.T, r *http.Request) {
	t.Helper()
	if guard.Tx(r.Context()) == nil {
		return
	}
	change := guard.Update(&Account{ID: 7}, func(a *Account) error { a.Cents--; return nil })
	testdb.WantNil(t, change.Run(r.Context(), guard.Tx(r.Context())))
}

// newStand serves each handler at /plain/NAME and /guarded/NAME.
func newStand(t *testing.T, handlers map[string]http.HandlerFunc) *stand {
	t.Helper()
	s := newSite(t)
	s.cfg.Principal = func(*http.Request) (string, error) { return "eve", nil }
	s.cfg.Methods = []string{http.MethodPost, http.MethodHead}
	s.cfg.KeepHeader = func(name string) bool { return name != "X-Once" }
	g, err := httpguard.New(s.guard.Guard, s.cfg)
	testdb.WantNil(t, err)
	mux := http.NewServeMux()
	for name, handler := range handlers {
		mux.HandleFunc("/plain/"+name, handler)
		mux.Handle("/guarded/"+name, g(handler))
	}
	outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Request-Id", "17")
		mux.ServeHTTP(w, r)
	})
	st := &stand{site: s, servers: make(map[string]*httptest.Server)}
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
		st.servers[protocol] = listen(t, protocol, outer)
	}
	return st
}

// listen starts a server.
func listen(t *testing.T, protocol string, h http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // panics and superfluous statuses
	if server.EnableHTTP2 = protocol == "HTTP/2"; server.EnableHTTP2 {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	t.Cleanup(server.Client().CloseIdleConnections)
	return server
}

func newRequest(t *testing.T, method, url, key string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	testdb.WantNil(t, err)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return r
}

func (st *stand) cents() int64 {
	st.t.Helper()
	var a Account
	testdb.WantNil(st.t, st.db.Take(&a, 7).Error)
	return a.Cents
}

// A fate is what becomes of a guarded answer.
type fate int

const (
	stored  fate = iota // it is net/http's, and so is the one of a repeat
	failed              // it is net/http's, and nothing is committed or stored
	refused             // it is 500: nothing is committed or stored
	cut                 // the connection is cut: nothing is committed or stored
)

// TestResponseWriterSurface: with all that net/http lets a handler do with its writer the
// answer under a guard is the one without it, for the repeat, too, over HTTP/1.1 and HTTP/2;
// or nothing is committed. What net/http does over HTTP/1.1 counts.
func TestResponseWriterSurface(t *testing.T) {
	t.Parallel()
	type line struct {
		do   func(w http.ResponseWriter, r *http.Request)
		fate fate
		once string // headers and trailers that a repeat does not get
		head bool
	}
	// unsupported wants an error or a missing method of a guarded writer.
	unsupported := func(call func(c *http.ResponseController) error) line {
		return line{do: func(w http.ResponseWriter, r *http.Request) {
			if guard.Tx(r.Context()) != nil {
				if err := call(http.NewResponseController(w)); !errors.Is(err, http.ErrNotSupported) {
					t.Errorf("the error is %v", err)
				}
			}
			write(w, "done")
		}}
	}
	status := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); write(w, "a") }
	}
	set := func(pairs ...string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(pairs); i += 2 {
				w.Header()[pairs[i]] = append(w.Header()[pairs[i]], pairs[i+1])
			}
			w.WriteHeader(http.StatusCreated)
			write(w, "<!DOCTYPE html>", "12345")
		}
	}
	lines := map[string]line{
		// the status
		"nothing":        {do: func(http.ResponseWriter, *http.Request) {}},
		"status-200":     {do: status(200)},
		"status-204":     {do: status(204)},
		"status-304":     {do: status(304)},
		"status-404":     {do: status(404), fate: failed},
		"status-999":     {do: status(999), fate: failed},
		"status-0":       {do: status(0), fate: cut},
		"status-5":       {do: status(5), fate: cut},
		"status-42":      {do: status(42), fate: cut},
		"status-99":      {do: status(99), fate: cut},
		"status-minus-1": {do: status(-1), fate: cut},
		"status-1000":    {do: status(1000), fate: cut},
		"status-101":     {do: status(101), fate: refused},
		"superfluous-status": {do: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			w.WriteHeader(http.StatusServiceUnavailable)
		}},
		"superfluous-none": {do: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated); w.WriteHeader(5) }},
		"status-after-body": {do: func(w http.ResponseWriter, _ *http.Request) {
			write(w, "a")
			w.WriteHeader(http.StatusServiceUnavailable)
		}},
		"abort": {do: func(w http.ResponseWriter, _ *http.Request) {
			write(w, "a")
			panic(http.ErrAbortHandler)
		}, fate: cut},

		// informational responses
		"hints-of-something-else": {do: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</a.css>")
			w.Header().Set("Set-Cookie", "session=1")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			w.Header().Del("Set-Cookie")
			w.WriteHeader(http.StatusCreated)
		}},
		"hints-of-what-fails": {do: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Order", "17")
			w.Header().Set("Set-Cookie", "session=1")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("X-Order")
			w.Header().Del("Set-Cookie")
			http.Error(w, "no", http.StatusServiceUnavailable)
		}, fate: failed},
		"hints-alone": {do: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints) }},
		"processing": {do: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusProcessing)
			w.WriteHeader(http.StatusContinue)
			write(w, "a")
		}},

		// the body
		"writes": {do: func(w http.ResponseWriter, _ *http.Request) { write(w, "a", "", "b") }},
		"empty-write": {do: func(w http.ResponseWriter, _ *http.Request) {
			write(w, "")
			w.WriteHeader(http.StatusServiceUnavailable)
		}},
		"string":        {do: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a") }},
		"string-writer": {do: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.(io.StringWriter).WriteString("a") }},
		"copy":          {do: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, strings.NewReader("abc")) }},
		"large":         {do: func(w http.ResponseWriter, _ *http.Request) { write(w, strings.Repeat("a", 60<<10)) }},
		"too-large":     {do: func(w http.ResponseWriter, _ *http.Request) { write(w, strings.Repeat("a", 65<<10)) }, fate: refused},
		"too-much":      {do: func(w http.ResponseWriter, _ *http.Request) { write(w, slices.Repeat([]string{"0123456789"}, 7000)...) }, fate: refused},
		"head":          {do: func(w http.ResponseWriter, _ *http.Request) { write(w, "abc") }, head: true},
		"head-length":   {do: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "5") }, head: true},
		"head-nothing":  {do: func(http.ResponseWriter, *http.Request) {}, head: true},
		"not-allowed": {do: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
			if _, err := w.Write(nil); err != nil {
				t.Errorf("the error of no bytes is %v", err)
			}
			if _, err := w.Write([]byte("a")); !errors.Is(err, http.ErrBodyNotAllowed) {
				t.Errorf("the error of a byte is %v", err)
			}
		}},

		// its length
		"length":         {do: set("Content-Length", "20")},
		"length-short":   {do: set("Content-Length", "21"), fate: refused},
		"length-none":    {do: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1") }, fate: refused},
		"length-long":    {do: set("Content-Length", "15")}, // the second Write fails
		"length-between": {do: set("Content-Length", "17"), fate: refused},
		"length-bad":     {do: set("Content-Length", "many")},
		"length-204": {do: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			w.WriteHeader(http.StatusNoContent)
		}},

		// headers
		"header":           {do: set("X-A", "1", "X-A", "2")},
		"header-by-hand":   {do: set("x-a", "1")},
		"header-not-utf-8": {do: set("X-A", "caf\xe9", "X-B", "\xff\xfe")},
		"header-removed":   {do: func(w http.ResponseWriter, _ *http.Request) { w.Header().Del("Request-Id") }},
		"header-replaced":  {do: set("Request-Id", "18")},
		"header-emptied":   {do: func(w http.ResponseWriter, _ *http.Request) { w.Header()["Request-Id"] = nil }},
		"header-late": {do: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			w.Header().Set("X-Late", "1")
			w.Header().Del("Request-Id")
			write(w, "a")
		}},
		"header-late-for-body": {do: func(w http.ResponseWriter, _ *http.Request) { write(w, "a"); w.Header().Set("X-Late", "1") }},
		"type":                 {do: set("Content-Type", "text/x-own")},
		"type-found":           {do: set()},
		"type-not-wanted":      {do: func(w http.ResponseWriter, _ *http.Request) { w.Header()["Content-Type"] = nil; write(w, "<html>") }},
		"type-of-encoded":      {do: set("Content-Encoding", "own")},
		"type-in-pieces":       {do: func(w http.ResponseWriter, _ *http.Request) { write(w, "<!DOC", "TYPE html>") }},
		"cookie":               {do: func(w http.ResponseWriter, _ *http.Request) { http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"}) }, once: "Set-Cookie"},
		"cookie-by-hand":       {do: set("set-cookie", "a=b", "SET-COOKIE", "c=d"), once: "Set-Cookie"},
		"date":                 {do: set("Date", "Thu, 01 Jan 1970 00:00:00 GMT")},
		"not-kept":             {do: set("x-once", "1"), once: "X-Once"},

		// trailers
		"trailer": {do: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum, X-None")
			write(w, "a")
			w.Header().Set("X-Sum", "1")
		}},
		"trailer-unannounced": {do: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Other") // or HTTP/1.1 has none for so small a body
			write(w, "a")
			w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
		}},
		"trailer-cookie": {do: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "Set-Cookie, X-Sum")
			write(w, "a")
			w.Header().Set("Set-Cookie", "a=b")
			w.Header().Set("X-Sum", "1")
		}, once: "Set-Cookie"},

		// what else a writer may have
		"flush": {do: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.(http.Flusher).Flush()
			w.Header().Set("X-Late", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			write(w, "a")
		}},
		"flush-error":    unsupported(func(c *http.ResponseController) error { return c.Flush() }),
		"hijack":         unsupported(func(c *http.ResponseController) error { _, _, err := c.Hijack(); return err }),
		"read-deadline":  unsupported(func(c *http.ResponseController) error { return c.SetReadDeadline(time.Now()) }),
		"write-deadline": unsupported(func(c *http.ResponseController) error { return c.SetWriteDeadline(time.Now()) }),
		"full-duplex":    unsupported(func(c *http.ResponseController) error { return c.EnableFullDuplex() }),
		"interfaces": {do: func(w http.ResponseWriter, r *http.Request) {
			if guard.Tx(r.Context()) != nil {
				if _, ok := w.(http.Pusher); ok {
					t.Error("there is a Pusher")
				}
				if _, ok := w.(http.Hijacker); ok {
					t.Error("there is a Hijacker")
				}
				if _, ok := w.(http.CloseNotifier); ok { //nolint:staticcheck // programs still ask for it
					t.Error("there is a CloseNotifier")
				}
				if _, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
					t.Error("there is a way around the guard")
				}
			}
		}},
		"websocket": {do: func(w http.ResponseWriter, r *http.Request) {
			if _, ok := w.(http.Hijacker); !ok || guard.Tx(r.Context()) == nil {
				http.Error(w, "no Hijacker", http.StatusNotImplemented)
			}
		}, fate: failed},

		// functions of net/http
		"error": {do: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.Header().Set("Etag", "a")
			http.Error(w, "no", http.StatusConflict)
		}, fate: failed},
		"redirect": {do: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/orders/1", http.StatusSeeOther) }},
		"content": {do: func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "a.txt", time.Unix(1e9, 0), strings.NewReader(strings.Repeat("a", 5000)))
		}},
		"proxy":       {do: httputil.NewSingleHostReverseProxy(proxied(t)).ServeHTTP},
		"within-time": {do: http.TimeoutHandler(http.HandlerFunc(set("X-A", "1")), time.Minute, "late").ServeHTTP},
		"out-of-time": {do: http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			write(w, "a")
			<-r.Context().Done()
		}), time.Millisecond, "late").ServeHTTP, fate: failed},
		"max-bytes": {do: func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1)); err != nil {
				http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			}
		}, fate: failed},
	}
	handlers := make(map[string]http.HandlerFunc)
	for name, l := range lines {
		handlers[name] = func(w http.ResponseWriter, r *http.Request) {
			spend(t, r)
			l.do(w, r)
		}
	}
	st := newStand(t, handlers)
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		l := lines[name]
		method := http.MethodPost
		if l.head {
			method = http.MethodHead
		}
		ask := func(protocol, place, key string) seen {
			server := st.servers[protocol]
			return look(t, server, newRequest(t, method, server.URL+"/"+place+"/"+name, key, strings.NewReader("body")))
		}
		var plain seen
		if l.fate == stored || l.fate == failed {
			plain = ask("HTTP/1.1", "plain", "")
		}
		for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				before := st.cents()
				first := ask(protocol, "guarded", protocol)
				again := ask(protocol, "guarded", protocol)
				spent := before - st.cents()
				replayed := again.header.Get("Idempotent-Replayed") == "true"
				if len(first.hints)+len(again.hints) > 0 {
					t.Errorf("hints are sent: %v", first.hints)
				}
				want, but := plain, []string(nil)
				if _, ok := plain.header["Content-Length"]; !ok {
					but = []string{"Content-Length"} // a whole answer has one, a flushed one has none
				}
				wantAgain := plain.without(l.once)
				switch l.fate {
				case refused:
					if first.status != http.StatusInternalServerError || again.status != http.StatusInternalServerError || !strings.Contains(first.body, "Internal error") {
						t.Fatalf("the answers are\n%v and\n%v, want 500", first, again)
					}
					want, wantAgain = first, first
				case cut:
					want, wantAgain = seen{}, seen{}
				}
				if !same(first.without(but...), want.without(but...)) {
					t.Errorf("the answer is\n%v, want\n%v", first, want)
				}
				if !same(again.without(append(but, "Idempotent-Replayed")...), wantAgain.without(but...)) {
					t.Errorf("the second answer is\n%v, want\n%v", again, wantAgain)
				}
				if replayed != (l.fate == stored) || (spent == 1) != (l.fate == stored) || spent > 1 {
					t.Errorf("replayed is %t, and %d cents are spent", replayed, spent)
				}
			})
		}
	}
}

// proxied returns the URL of a server that answers with hints, headers, a body and trailers.
func proxied(t *testing.T) *url.URL {
	t.Helper()
	server := listen(t, "HTTP/1.1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Trailer", "X-Sum")
		w.Header().Set("X-A", "1")
		w.WriteHeader(http.StatusEarlyHints)
		write(w, "a")
		w.Header().Set("X-Sum", "1")
		w.Header().Set(http.TrailerPrefix+"X-Other", "2")
	}))
	u, err := url.Parse(server.URL)
	testdb.WantNil(t, err)
	return u
}

// TestRequestSurface: a handler sees the request as net/http has it, under a guard and without
// one.
func TestRequestSurface(t *testing.T) {
	t.Parallel()
	type line struct {
		body   string
		header string // Content-Type
		see    func(r *http.Request) string
		send   func(r *http.Request) // changes the request
	}
	const form = "application/x-www-form-urlencoded"
	parts := "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f.txt\"\r\n\r\nfile\r\n--b--\r\n"
	read := func(r *http.Request) string {
		all, err := io.ReadAll(r.Body)
		return fmt.Sprintf("%q %v", all, err)
	}
	lines := map[string]line{
		"body":       {body: "abc", see: read},
		"body-empty": {see: read},
		"body-chunked": {body: "abc", see: func(r *http.Request) string {
			return fmt.Sprint(read(r), r.ContentLength)
		}, send: func(r *http.Request) { r.ContentLength = -1 }},
		"body-length": {body: "abc", see: func(r *http.Request) string { return fmt.Sprint(r.ContentLength, r.Header.Get("Content-Length")) }},
		"body-twice":  {body: "abc", see: func(r *http.Request) string { return read(r) + read(r) }},
		"get-body":    {body: "abc", see: func(r *http.Request) string { return fmt.Sprint(r.GetBody == nil) }},
		"expect": {body: "abc", see: func(r *http.Request) string { return read(r) + r.Header.Get("Expect") }, send: func(r *http.Request) {
			r.Header.Set("Expect", "100-continue")
		}},
		"trailer": {body: "abc", see: func(r *http.Request) string { return read(r) + fmt.Sprint(r.Trailer) }, send: func(r *http.Request) {
			r.ContentLength, r.Trailer = -1, http.Header{"X-Sum": {"1"}}
		}},
		"form":       {body: "a=1&b=2", header: form, see: func(r *http.Request) string { return fmt.Sprint(r.ParseForm(), r.Form, r.PostForm) }},
		"form-value": {body: "a=1", header: form, see: func(r *http.Request) string { return r.FormValue("a") + r.PostFormValue("a") + r.FormValue("q") }},
		"parts": {body: parts, header: "multipart/form-data; boundary=b", see: func(r *http.Request) string {
			return fmt.Sprint(r.ParseMultipartForm(100), r.Form, len(r.MultipartForm.File["f"]))
		}},
		"file": {body: parts, header: "multipart/form-data; boundary=b", see: func(r *http.Request) string {
			f, h, err := r.FormFile("f")
			if err != nil {
				return err.Error()
			}
			defer f.Close()
			all, err := io.ReadAll(f)
			return fmt.Sprint(h.Filename, string(all), err)
		}},
		"reader": {body: parts, header: "multipart/form-data; boundary=b", see: func(r *http.Request) string {
			m, err := r.MultipartReader()
			if err != nil {
				return err.Error()
			}
			p, err := m.NextPart()
			return fmt.Sprint(p.FormName(), err)
		}},
		"names": {see: func(r *http.Request) string {
			return fmt.Sprint(r.Method, r.Proto, r.Host != "", r.RemoteAddr != "", r.TLS != nil, r.URL.RawQuery,
				strings.TrimPrefix(strings.TrimPrefix(r.RequestURI, "/guarded"), "/plain"))
		}},
		"user": {see: func(r *http.Request) string {
			name, password, ok := r.BasicAuth()
			cookie, err := r.Cookie("c")
			return fmt.Sprint(name, password, ok, cookie, err, r.UserAgent(), r.Referer())
		}, send: func(r *http.Request) {
			r.SetBasicAuth("eve", "x")
			r.AddCookie(&http.Cookie{Name: "c", Value: "d"})
			r.Header.Set("Referer", "there")
		}},
		"context": {see: func(r *http.Request) string {
			_, server := r.Context().Value(http.ServerContextKey).(*http.Server)
			return fmt.Sprint(server, r.Context().Value(http.LocalAddrContextKey) != nil, r.Context().Err())
		}},
	}
	handlers := make(map[string]http.HandlerFunc)
	for name, l := range lines {
		handlers[name] = func(w http.ResponseWriter, r *http.Request) { write(w, l.see(r)) }
	}
	st := newStand(t, handlers)
	for name, l := range lines {
		for protocol, server := range st.servers {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				ask := func(place string) seen {
					r := newRequest(t, http.MethodPost, server.URL+"/"+place+"/"+name+"?q=1", protocol, strings.NewReader(l.body))
					if l.header != "" {
						r.Header.Set("Content-Type", l.header)
					}
					if l.send != nil {
						l.send(r)
					}
					return look(t, server, r)
				}
				plain, first, again := ask("plain"), ask("guarded"), ask("guarded")
				if plain.status != http.StatusOK || !same(first, plain) || !same(again.without("Idempotent-Replayed"), plain) {
					t.Errorf("the answers are\n%v and\n%v, want\n%v", first, again, plain)
				}
			})
		}
	}
}

// TestTimeoutOfTheServer: an operation goes on when a handler outside has given up, and the next
// try gets its answer.
func TestTimeoutOfTheServer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	given := make(chan bool)
	inner := s.serve(func(w http.ResponseWriter, r *http.Request) {
		<-given
		s.charge(w, r)
	})
	server := listen(t, "HTTP/1.1", http.TimeoutHandler(inner.Config.Handler, time.Millisecond, "late"))
	post(t, server, "/pay/1", "", "Idempotency-Key", "a").want(t, http.StatusServiceUnavailable, "")
	close(given)
	testwait.Until(t, "the next try gets the answer", func() bool {
		return post(t, inner, "/pay/1", "", "Idempotency-Key", "a").header.Get("Idempotent-Replayed") == "true"
	})
	s.wantRan(1)
	s.wantCents(999)
}

// TestAnswerIsSentBeforeAfterCommit: a client has the whole answer while a function of
// AfterCommit runs.
func TestAnswerIsSentBeforeAfterCommit(t *testing.T) {
	t.Parallel()
	var failed atomic.Bool
	for _, length := range []int{0, 3, 5000} {
		released := make(chan chan bool, 2)
		st := newStand(t, map[string]http.HandlerFunc{"pay": func(w http.ResponseWriter, r *http.Request) {
			release := make(chan bool)
			released <- release
			httpguard.AfterCommit(r.Context(), func() {
				select {
				case <-release:
				case <-time.After(30 * time.Second):
					failed.Store(true)
					t.Error("the answer does not come")
				}
			})
			w.WriteHeader(http.StatusCreated)
			write(w, strings.Repeat("a", length))
		}})
		for protocol, server := range st.servers {
			t.Run(fmt.Sprint(length, "/", protocol), func(t *testing.T) {
				if failed.Load() {
					t.SkipNow() // it takes its time
				}
				res, err := server.Client().Do(newRequest(t, http.MethodPost, server.URL+"/guarded/pay", protocol, http.NoBody))
				testdb.WantNil(t, err)
				defer res.Body.Close()
				var n int64
				if protocol == "HTTP/2" { // its end comes with the end of the handler
					n, err = io.Copy(io.Discard, io.LimitReader(res.Body, int64(length)))
				} else {
					n, err = io.Copy(io.Discard, res.Body)
				}
				if err != nil || n != int64(length) || res.StatusCode != http.StatusCreated {
					t.Errorf("the answer is %s, %d bytes, %v", res.Status, n, err)
				}
				close(<-released)
			})
		}
	}
}

// TestAnswerIsEncodedOutside: what a middleware outside of the guard makes of an answer comes
// whole, with functions behind the commit as without.
func TestAnswerIsEncodedOutside(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	inner := s.serve(func(w http.ResponseWriter, r *http.Request) {
		httpguard.AfterCommit(r.Context(), func() {})
		write(w, "answer")
	})
	server := listen(t, "HTTP/1.1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		inner.Config.Handler.ServeHTTP(encoded{w, z}, r)
	}))
	for range 2 { // the client decodes it
		got := post(t, server, "/pay/1", "", "Idempotency-Key", "a")
		if got.want(t, http.StatusOK, ""); got.body != "answer" {
			t.Errorf("the answer is %q", got.body)
		}
	}
}

// TestTrailersBeforeAfterCommit: trailers come with the answer and with its repeat, announced or
// not, also if functions wait for the commit.
func TestTrailersBeforeAfterCommit(t *testing.T) {
	t.Parallel()
	st := newStand(t, map[string]http.HandlerFunc{"pay": func(w http.ResponseWriter, r *http.Request) {
		httpguard.AfterCommit(r.Context(), func() {})
		write(w, "answer")
		w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
	}})
	for protocol, server := range st.servers {
		for range 2 {
			s := look(t, server, newRequest(t, http.MethodPost, server.URL+"/guarded/pay", protocol, http.NoBody))
			if s.body != "answer" || s.trailer.Get("X-Sum") != "1" {
				t.Errorf("%s: the answer is %v, want a trailer", protocol, s)
			}
		}
	}
}

type encoded struct {
	http.ResponseWriter
	z io.Writer
}

func (e encoded) Write(p []byte) (int, error) { return e.z.Write(p) }
func (e encoded) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// TestNothingIsSentBeforeCommit: what a handler has answered does not reach the client if its
// transaction is not committed.
func TestNothingIsSentBeforeCommit(t *testing.T) {
	t.Parallel()
	st := newStand(t, map[string]http.HandlerFunc{"pay": func(w http.ResponseWriter, r *http.Request) {
		spend(t, r)
		w.Header().Set("X-Order", "17")
		w.Header().Set("Content-Length", "100") // it can't be sent
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
		w.WriteHeader(http.StatusCreated)
		write(w, "order 17")
		w.(http.Flusher).Flush()
	}})
	for protocol, server := range st.servers {
		s := look(t, server, newRequest(t, http.MethodPost, server.URL+"/guarded/pay", protocol, http.NoBody))
		if s.status < http.StatusInternalServerError || s.header.Get("X-Order") != "" || len(s.hints)+len(s.trailer) > 0 || strings.Contains(s.body, "order") {
			t.Errorf("%s: the answer is %v", protocol, s)
		}
	}
	st.wantCents(1000)
}
