package dispatch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/monitor/dispatch"
	"github.com/belaygo/belay/internal/monitor/incident"
	"github.com/belaygo/belay/internal/monitor/receiver"
)

func TestAlert(t *testing.T) {
	inBubble(t, func(r *dispatch.Route) { r.MaxAlerts = 1 }, func(n *night) {
		at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
		n.save("1", "orders\x1b[2J", incident.New, func(i *incident.Incident) {
			i.Shard, i.NextStep = "0-5460", "Look at 127.0.0.1:7001.\nThen at the rest."
			i.Evidence = []incident.Evidence{
				{At: at, Node: "127.0.0.1:7002", Text: "became master"}, {At: at, Text: "epoch 6\nto 7"},
			}
		})
		n.save("2", "orders\x1b[2J", incident.New, func(i *incident.Incident) { i.FirstAt = i.FirstAt.Add(-time.Hour) })
		<-time.After(15 * time.Second) // on the bubble's clock
		n.inbox.mu.Lock()
		defer n.inbox.mu.Unlock()
		if len(n.inbox.got) != 1 {
			t.Fatalf("told %v", n.inbox.got)
		}
		got := n.inbox.got[0]
		if got.More != 1 || len(got.Alerts) != 1 || got.GroupKey != `{cause="failover", service="orders\\x1b[2J"}` {
			t.Errorf("notification %+v", got)
		}
		a := got.Alerts[0]
		for name, want := range map[string]string{
			receiver.AnnotationSummary:     `orders\x1b[2J: locks failed: a Redis failover lost them`,
			receiver.AnnotationDescription: "cause failover, confidence high, state new",
			receiver.AnnotationEvidence:    "03:02:01.000 UTC became master (127.0.0.1:7002)\n03:02:01.000 UTC epoch 6\\nto 7",
			receiver.AnnotationNext:        `Look at 127.0.0.1:7001.\nThen at the rest.`,
			receiver.AnnotationRunbook:     "http://d/docs/alerts/failover.md",
		} {
			if a.Annotations[name] != want {
				t.Errorf("%s = %q, want %q", name, a.Annotations[name], want)
			}
		}
		if a.URL != "http://m/incidents/1" || a.Labels["shard"] != "0-5460" || a.Labels["severity"] != "warning" || strings.Contains(a.Labels["service"], "\x1b") {
			t.Errorf("alert %+v", a)
		}
	})
}

// A host whose clock is ahead has not seen an incident before it began.
func TestAlertStart(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		now := time.Now()
		n.save("1", "orders", incident.New, func(i *incident.Incident) { i.OpenedAt, i.FirstAt = now, now.Add(time.Hour) })
		n.save("2", "stock", incident.New, func(i *incident.Incident) { i.OpenedAt, i.FirstAt = now, now.Add(-time.Hour) })
		<-time.After(15 * time.Second) // on the bubble's clock
		n.inbox.mu.Lock()
		defer n.inbox.mu.Unlock()
		for _, m := range n.inbox.got {
			a := m.Alerts[0]
			want := map[string]time.Time{"orders": now, "stock": now.Add(-time.Hour)}[a.Labels["service"]]
			if !a.StartsAt.Equal(want) {
				t.Errorf("%s begins at %v, want %v", a.Labels["service"], a.StartsAt, want)
			}
		}
		if len(n.inbox.got) != 2 {
			t.Errorf("told %v", n.inbox.got)
		}
	})
}
