package web_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/monitor/store"
	"github.com/belaygo/belay/notify"
)

func TestEmptyPage(t *testing.T) {
	body := page(t, &fakeStore{}, true, http.StatusOK)
	for _, want := range []string{"No event yet", "overlap", "lost", "unknown_commit", "degraded", "<b>0</b> in 0 events"} {
		mustContain(t, body, want)
	}
	mustNotContain(t, body, "<table", "does not answer")
}

func TestPageWithEvents(t *testing.T) {
	ev := event()
	body := page(t, &fakeStore{
		events: []store.Received{{At: time.Now(), Event: ev}},
		counts: map[notify.Verdict]store.Count{notify.Overlap: {Events: 1, Failures: 7}},
	}, true, http.StatusOK)
	for _, want := range []string{
		"<b>7</b> in 1 event<", "2026-05-04 03:02:01.500", "<code>order:1</code>", "orders-1", "refused", "event-1",
		"the database refused the write of orders",
	} {
		mustContain(t, body, want)
	}
	mustNotContain(t, body, "No event yet", "does not answer")
}

func TestPageSaysWhatDoesNotAnswer(t *testing.T) {
	body := page(t, &fakeStore{}, false, http.StatusOK)
	mustContain(t, body, "The broker does not answer")

	body = page(t, &fakeStore{err: errors.New("disk I/O error in /secret/path")}, true, http.StatusServiceUnavailable)
	mustContain(t, body, "The store does not answer")
	mustNotContain(t, body, "No event yet", "/secret/path")
}

func TestHostileEvent(t *testing.T) {
	ev := event()
	const script = `</code><script>alert(1)</script><img src=x onerror=alert(2)>`
	ev.Service, ev.Instance, ev.Key, ev.Table, ev.Owner = script, script, script+"\u202e\x1b[2J", script, script
	ev.ID = `"><script>`
	body := page(t, &fakeStore{events: []store.Received{{Event: ev}}}, true, http.StatusOK)
	mustNotContain(t, body, "<script", "<img", "\u202e", "\x1b")
	mustContain(t, body, "&lt;script&gt;")

	ev.Key = strings.Repeat("k", 1<<20)
	body = page(t, &fakeStore{events: []store.Received{{Event: ev}}}, true, http.StatusOK)
	if len(body) > 64<<10 {
		t.Errorf("a long key makes a page of %d bytes", len(body))
	}
}

func TestStyleHasTheHashOfThePolicy(t *testing.T) {
	res := get(t, handler(t, &fakeStore{}, true), "/")
	body := res.Body.String()
	_, rest, _ := strings.Cut(body, "<style>")
	style, _, ok := strings.Cut(rest, "</style>")
	if !ok || len(style) < 100 {
		t.Fatalf("no style in %q", body)
	}
	sum := sha256.Sum256([]byte(style))
	policy := res.Header().Get("Content-Security-Policy")
	mustContain(t, policy, "style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	mustNotContain(t, body, " style=") // the policy would refuse it
}
