package httpguard_test

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belaygo/belay/httpguard"
	"github.com/belaygo/belay/internal/testdb"
)

// behind returns a server that guards a handler behind a middleware.
func (s *site) behind(outer func(*http.Request), handler http.HandlerFunc) *httptest.Server {
	s.t.Helper()
	g, err := httpguard.New(s.guard.Guard, s.cfg)
	testdb.WantNil(s.t, err)
	guarded := g(handler)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		outer(r)
		guarded.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	s.t.Cleanup(server.Close)
	s.t.Cleanup(server.Client().CloseIdleConnections)
	return server
}

// TestFormIsParsedOnce: a handler finds each value once, whoever has parsed the form before, in part
// or whole.
func TestFormIsParsedOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.cfg.Keys = func(r *http.Request, _ []byte) ([]string, error) {
		testdb.WantNil(t, r.ParseMultipartForm(1<<20))
		return []string{"item:" + r.FormValue("item")}, nil
	}
	server := s.behind(func(r *http.Request) { _ = r.ParseForm() }, func(w http.ResponseWriter, r *http.Request) {
		testdb.WantNil(t, r.ParseMultipartForm(1<<20))
		_, _ = io.WriteString(w, strings.Join(append(r.PostForm["item"], r.Form["item"]...), " "))
	})
	body := parts("/?item=6", "x", "Content-Disposition: form-data; name=\"item\"\n\n7")
	r := body.send(t, server.URL, "k")
	r.Header.Set("User", "eve")
	if got := look(t, server, r); got.body != "7 6 7" {
		t.Errorf("the handler finds %q, want 7 in the body, and 6 and 7 in all", got.body)
	}
}

// TestDecodedBody: a body that a middleware has decoded may be shorter than what the client has sent,
// and what a middleware has left of one that it has read may not.
func TestDecodedBody(t *testing.T) {
	t.Parallel()
	decoded := func(r *http.Request, without ...string) {
		z, err := gzip.NewReader(r.Body)
		testdb.WantNil(t, err)
		r.Body = z
		for _, name := range without {
			r.Header.Del(name)
		}
	}
	for name, tt := range map[string]struct {
		outer  func(*http.Request)
		status int
	}{
		"the encoding is left":               {func(r *http.Request) { decoded(r) }, http.StatusOK},
		"both headers are removed":           {func(r *http.Request) { decoded(r, "Content-Encoding", "Content-Length") }, http.StatusOK},
		"the length is unknown":              {func(r *http.Request) { decoded(r, "Content-Encoding"); r.ContentLength = -1 }, http.StatusOK},
		"the length is that of another body": {func(r *http.Request) { decoded(r, "Content-Encoding") }, http.StatusInternalServerError},
		"read in part":                       {func(r *http.Request) { r.Header.Del("Content-Encoding"); _, _ = r.Body.Read(make([]byte, 1)) }, http.StatusInternalServerError},
		"read": {func(r *http.Request) {
			decoded(r, "Content-Encoding", "Content-Length")
			_, _ = io.Copy(io.Discard, r.Body)
		}, http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			server := s.behind(tt.outer, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
			for major, client := range map[int]*http.Client{1: over1(server), 2: server.Client()} {
				body := new(bytes.Buffer)
				z := gzip.NewWriter(body)
				_, _ = io.WriteString(z, "500 cents")
				testdb.WantNil(t, z.Close())
				r := newRequest(t, http.MethodPost, server.URL, "k", body)
				r.Header.Set("User", "eve")
				r.Header.Set("Content-Encoding", "gzip")
				res, err := client.Do(r)
				testdb.WantNil(t, err)
				got, err := io.ReadAll(res.Body)
				testdb.WantNil(t, err)
				_ = res.Body.Close()
				if res.ProtoMajor != major || res.StatusCode != tt.status || tt.status == http.StatusOK && string(got) != "500 cents" {
					t.Errorf("%s: %d %s, want %d over HTTP/%d", res.Proto, res.StatusCode, got, tt.status, major)
				}
			}
		})
	}
}

// over1 returns a client that speaks HTTP/1.1.
func over1(server *httptest.Server) *http.Client {
	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.ForceAttemptHTTP2, transport.DisableKeepAlives = false, true
	transport.TLSClientConfig.NextProtos = nil
	transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	return &http.Client{Transport: transport}
}
