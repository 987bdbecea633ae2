package httpguard_test

import (
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
