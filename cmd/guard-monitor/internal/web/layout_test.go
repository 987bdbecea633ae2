package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// A key of 512 bytes leaves the other columns their words, and the names of the pages fit on a
// phone.
func TestBrowserLayout(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ev := event("long")
	ev.Key, ev.Service, ev.Instance = strings.Repeat("k", 512), strings.Repeat("service", 8), "orders-5d8c7b9f4-x2x9z"
	ev.CaughtAt = time.Now().Add(-49 * time.Hour)
	s.add(t, ev)
	s.explain(t)
	srv := s.server(t)
	b := browse(t)
	for _, width := range []int64{700, 1280} {
		b.width(width, false)
		for _, path := range []string{"/events", "/incidents/" + incidentID} {
			b.run(chromedp.Navigate(srv.URL + path))
			b.until(`document.readyState === "complete" && document.querySelector("td.what b")`)
			for _, p := range eval[[]string](b, `[...document.querySelectorAll("td.what b, td.group a, td.when .day")].filter((e) =>
				e.getClientRects().length > 1 || e.parentElement.scrollWidth > e.parentElement.clientWidth).map((e) => e.outerHTML)`) {
				t.Errorf("%s at %d: broken: %s", path, width, p)
			}
			b.shot(fmt.Sprint("long-", width, strings.ReplaceAll(path, "/", "-")))
			if high := eval[float64](b, `document.querySelector("td.key code").offsetHeight`); high > 200 {
				t.Errorf("%s at %d: a key is %v pixels high", path, width, high)
			}
			if over := eval[float64](b, `(([e]) => e.scrollWidth - e.clientWidth)(document.querySelectorAll(".scroll"))`); over > 0 {
				t.Errorf("%s at %d: the table is %v pixels too wide", path, width, over)
			}
		}
	}
	b.width(390, false)
	for _, lang := range []string{"en", "zh"} {
		b.run(chromedp.Navigate(srv.URL + "/language?to=" + lang))
		b.until(`document.readyState === "complete" && document.documentElement.lang === "` + lang + `"`)
		if over := eval[float64](b, `(([e]) => e.scrollWidth - e.clientWidth)(document.querySelectorAll("nav"))`); over > 0 {
			t.Errorf("%s at 390: the names of the pages are %v pixels too wide", lang, over)
		}
	}
}
