package web_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

// To load the answer to a form again would send the form again.
func TestBrowserSendsARefusedFormOnce(t *testing.T) {
	t.Parallel()
	s := busySite(t)
	srv, sent := s.counting(t, http.MethodPost, "/incidents/"+incidentID+"/ack")
	b := browse(t)
	b.hurry()
	b.run(chromedp.Navigate(srv.URL+"/incidents/"+incidentID), chromedp.SendKeys(`#actions input[name=by]`, " "),
		chromedp.Click("#actions button"))
	b.shows("the name is empty")
	b.mustBeStill()
	if n := sent.Load(); n != 1 {
		t.Errorf("the form was sent %d times", n)
	}
}

// mustBeStill gives the page, in a hurry, the time to fetch itself.
func (t *tab) mustBeStill() {
	t.tb.Helper()
	t.until(`window.ticks > 20`)
	if badge := eval[string](t, `document.getElementById("live").textContent`); badge != "" {
		t.tb.Errorf("a page that is not fetched again says %q", badge)
	}
}

// counting is server that counts some requests.
func (s *site) counting(tb testing.TB, method, path string) (*httptest.Server, *atomic.Int32) {
	tb.Helper()
	n := new(atomic.Int32)
	return s.behind(tb, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == method && r.URL.Path == path {
			n.Add(1)
		}
		s.ServeHTTP(w, r)
	})), n
}
