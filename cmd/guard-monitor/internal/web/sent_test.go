package web_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// sent stores a heartbeat that counts messages.
func (s *site) sent(t testing.TB, service string, ago time.Duration, m incident.Messages) {
	t.Helper()
	s.sentBy(t, service, "1", ago, m)
}

func (s *site) sentBy(t testing.TB, service, instance string, ago time.Duration, m incident.Messages) {
	t.Helper()
	at := time.Now().Add(-ago)
	h := incident.Heartbeat{Service: service, Instance: instance, At: at, Every: time.Minute, ReceivedAt: at, Messages: m}
	if err := s.store.AddHeartbeat(t.Context(), h); err != nil {
		t.Fatal(err)
	}
}

// The messages that wait are on the overview, in both languages, and in the API.
func TestMessagesAreShown(t *testing.T) {
	s := newSite(t)
	const title = "<h2>Messages on their way</h2>"
	s.sent(t, "orders", 0, incident.Messages{})
	mustNotContain(t, s.page(t, "/"), title)
	s.sent(t, "orders", 0, incident.Messages{Table: "shop.belay_message"})
	body := s.page(t, "/")
	mustContain(t, body, title, "shop.belay_message", "none waits")
	mustNotContain(t, body, "dead letters:", "undecided:", "belay-messages")

	s.sent(t, "orders", 0, incident.Messages{
		Table: "shop.belay_message", Waiting: 10_000, Oldest: 7 * time.Minute, Parked: 12, Dead: 3, Undecided: 2, OldestDead: 2 * time.Hour,
	})
	mustContain(t, s.page(t, "/"), "waiting: 10000&#43;", `class="poor">the oldest for 7 min`, "keys parked: 12", `class="poor">dead letters: 3, the first for 2 h`,
		`class="poor">undecided: 2`, "<code>belay-messages list</code>")
	mustContain(t, s.page(t, "/", "Accept-Language", "zh"), "<h2>待发送的消息</h2>", "等待：10000&#43;", "暂停的键：12", "死信：3", "待裁定：2")
	items := s.json(t, "/api/v1/messages")["items"].([]any)
	m := items[0].(map[string]any)
	if len(items) != 1 || m["service"] != "orders" || m["table"] != "shop.belay_message" || m["waiting"] != 10000.0 || m["oldest_seconds"] != 420.0 ||
		m["parked"] != 12.0 || m["dead"] != 3.0 || m["undecided"] != 2.0 || m["oldest_dead_seconds"] != 7200.0 || m["stale"] != false || m["counted_at"] == nil {
		t.Errorf("the API has %v", items)
	}

	// A database of the same name, on another server.
	s.sentBy(t, "orders", "2", 0, incident.Messages{Table: "shop.belay_message", Waiting: 1, Parked: 13})
	mustContain(t, s.page(t, "/"), "waiting: 10000&#43;", "keys parked: 13", "undecided: 2")
	if items := s.json(t, "/api/v1/messages")["items"].([]any); len(items) != 1 {
		t.Errorf("the API has %v", items)
	}

	s.sent(t, "mail", 10*time.Minute, incident.Messages{Table: "mail.belay_message", Waiting: 1, Oldest: time.Second})
	mustContain(t, s.page(t, "/"), "counted ")
	if m := s.json(t, "/api/v1/messages")["items"].([]any)[0].(map[string]any); m["stale"] != true {
		t.Errorf("the API has %v", m)
	}
}

// The overview shows the worst tables, and says how many there are.
func TestManyTablesOfMessages(t *testing.T) {
	s := newSite(t)
	for n := range 25 {
		s.sent(t, fmt.Sprintf("a%02d", n), 0, incident.Messages{Table: "a.belay_message"})
	}
	s.sent(t, "worst", 0, incident.Messages{Table: "w.belay_message", Waiting: 1, Dead: 1, Undecided: 1})
	mustContain(t, s.page(t, "/"), "w.belay_message", "The first 20 of 26")
}
