package web_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

// To load the answer to a form again would send the form again.
func TestBrowserSendsARefusedFormOnce(t *testing.T) {
	s := busySite(t)
	var sent atomic.Int32
	srv := s.behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			sent.Add(1)
		}
		s.ServeHTTP(w, r)
	}))
	b := browse(t)
	b.hurry()
	b.run(chromedp.Navigate(srv.URL+"/incidents/"+incidentID), chromedp.Click("summary"),
		chromedp.SendKeys(`input[name=comment]`, "deploy"), chromedp.SendKeys(`#silence input[name=by]`, " "),
		chromedp.Click("#silence button"))
	b.shows("the name is empty")
	b.until(`window.ticks > 20`)
	if n := sent.Load(); n != 1 {
		t.Errorf("the form was sent %d times", n)
	}
	if badge := eval[string](b, `document.getElementById("live").textContent`); badge != "" {
		t.Errorf("the answer says that it is %q", badge)
	}
}
