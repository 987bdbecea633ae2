package web_test

import (
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// called stores a heartbeat that counts calls.
func (s *site) called(t testing.TB, instance string, ago time.Duration, c incident.Calls) {
	t.Helper()
	at := time.Now().Add(-ago)
	h := incident.Heartbeat{Service: "orders", Instance: instance, At: at, Every: time.Minute, ReceivedAt: at, Calls: c}
	if err := s.store.AddHeartbeat(t.Context(), h); err != nil {
		t.Fatal(err)
	}
}

// The requests whose call is not settled are on the overview, in both languages, and in the API.
func TestCallsAreShown(t *testing.T) {
	s := newSite(t)
	const title = "<h2>Calls to other services</h2>"
	s.called(t, "1", 0, incident.Calls{})
	mustNotContain(t, s.page(t, "/"), title)
	s.called(t, "1", 0, incident.Calls{Table: "shop.belay_pending"})
	body := s.page(t, "/")
	mustContain(t, body, title, "shop.belay_pending", "none is pending")
	mustNotContain(t, body, "undecided:")

	s.called(t, "1", 0, incident.Calls{Table: "shop.belay_pending", Pending: 10_000, Oldest: 7 * time.Minute, Undecided: 2, OldestUndecided: 2 * time.Hour})
	s.called(t, "2", 0, incident.Calls{Table: "shop.belay_pending", Pending: 3}) // a database of the same name, on another server
	mustContain(t, s.page(t, "/"), "pending: 10000&#43;", "the oldest for 7 min", `class="poor">undecided: 2, the first for 2 h`)
	mustContain(t, s.page(t, "/", "Accept-Language", "zh"), "<h2>对其他服务的调用</h2>", "未决：10000&#43;", "待裁定：2")
	items := s.json(t, "/api/v1/calls")["items"].([]any)
	c := items[0].(map[string]any)
	if len(items) != 1 || c["service"] != "orders" || c["table"] != "shop.belay_pending" || c["pending"] != 10000.0 || c["oldest_seconds"] != 420.0 ||
		c["undecided"] != 2.0 || c["oldest_undecided_seconds"] != 7200.0 || c["stale"] != false || c["counted_at"] == nil {
		t.Errorf("the API has %v", items)
	}
}
