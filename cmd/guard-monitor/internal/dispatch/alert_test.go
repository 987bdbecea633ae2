package dispatch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/dispatch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
)

func TestAlert(t *testing.T) {
	inBubble(t, func(r *dispatch.Route) { r.MaxAlerts = 1 }, func(n *night) {
		at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
		n.save("1", "orders\x1b[2J", incident.New, func(i *incident.Incident) {
			i.Shard, i.LastAt = "0-5460", at
			i.Evidence = []incident.Evidence{
				{At: at, Node: "127.0.0.1:7002", Kind: incident.Sentence, Stored: "became master"}, {At: at, Kind: incident.Sentence, Stored: "epoch 6\nto 7"},
				{At: at.Add(-24 * time.Hour), Kind: incident.Sentence, Stored: "the day before"},
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
			receiver.AnnotationSummary:     `orders\x1b[2J: a Redis failover`,
			receiver.AnnotationDescription: "cause failover, confidence high, state new",
			receiver.AnnotationEvidence:    "03:02:01.000 UTC became master (127.0.0.1:7002)\n03:02:01.000 UTC epoch 6\\nto 7\n2026-05-03 03:02:01.000 UTC the day before",
			receiver.AnnotationNext:        words.English.Next(incident.Incident{Cause: incident.Failover}),
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

// A host whose clock is ahead has not seen an incident before it began. One that came back began then.
func TestAlertStart(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		now := time.Now()
		n.save("1", "orders", incident.New, func(i *incident.Incident) { i.OpenedAt, i.FirstAt = now, now.Add(time.Hour) })
		n.save("2", "stock", incident.New, func(i *incident.Incident) { i.OpenedAt, i.FirstAt = now, now.Add(-time.Hour) })
		n.save("3", "mail", incident.Regressed, func(i *incident.Incident) { i.OpenedAt, i.FirstAt, i.Regressed = now, now.Add(-6*24*time.Hour), 1 })
		<-time.After(15 * time.Second) // on the bubble's clock
		n.inbox.mu.Lock()
		defer n.inbox.mu.Unlock()
		for _, m := range n.inbox.got {
			a := m.Alerts[0]
			want := map[string]time.Time{"orders": now, "stock": now.Add(-time.Hour), "mail": now}[a.Labels["service"]]
			if !a.StartsAt.Equal(want) {
				t.Errorf("%s begins at %v, want %v", a.Labels["service"], a.StartsAt, want)
			}
		}
		if len(n.inbox.got) != 3 {
			t.Errorf("told %v", n.inbox.got)
		}
	})
}

// The first line of an alert is no surer of a cause than what follows. What an event itself
// reports is sure.
func TestAlertIsNoSurerThanItsEvidence(t *testing.T) {
	for _, tt := range []struct {
		cause      incident.Cause
		confidence incident.Confidence
		want       string
	}{
		{incident.Failover, incident.High, "orders: a Redis failover"},
		{incident.Failover, incident.Medium, "orders: probably a Redis failover"},
		{incident.Deleted, incident.Low, "orders: possibly locks were removed from Redis"},
		{incident.Bypass, incident.Medium, "orders: probably somebody wrote without a valid lock"},
		{incident.Unknown, incident.Low, "orders: locks failed, cause unknown"},
		{incident.Unreachable, incident.Low, "orders: Redis could not be reached"},
		{incident.HeartbeatSilent, incident.Medium, "orders: the service no longer reports"},
	} {
		i := incident.Incident{Service: "orders", Cause: tt.cause, Confidence: tt.confidence, State: incident.New}
		if summary, _ := dispatch.Words(&i); summary != tt.want {
			t.Errorf("%s, %s: %s, want %s", tt.cause, tt.confidence, summary, tt.want)
		}
	}
}

// An alert begins with what became of the data, and takes nothing that went well
// for a failure.
func TestAlertBeginsWithTheEffect(t *testing.T) {
	for name, tt := range map[string]struct {
		cause                incident.Cause
		effect               incident.Effect
		summary, description string
	}{
		"refused by the database": {
			incident.Flushed, incident.Effect{Failures: 5, Undone: 5},
			"orders: nothing was changed; FLUSHALL or FLUSHDB emptied a Redis node",
			"5 operations were rolled back and changed nothing; cause flushed, confidence high, state new; 5 failures in 7 events on 3 keys",
		},
		"commits in doubt": {
			incident.UnknownCommit, incident.Effect{Failures: 2, Unknown: 2, Doubtful: []string{"order:1", "order:2\n"}},
			"orders: look at these 2 operations; the database did not answer the COMMIT",
			`look at these 2 operations, which may or may not have been committed, keys "order:1", "order:2\n"; cause unknown_commit, confidence high, state new; 2 failures in 7 events on 3 keys`,
		},
		"one commit in doubt": {
			incident.UnknownCommit, incident.Effect{Failures: 1, Unknown: 1},
			"orders: look at 1 operation; the database did not answer the COMMIT",
			"look at 1 operation, which may or may not have been committed; cause unknown_commit, confidence high, state new; 1 failure in 7 events on 3 keys",
		},
		"committed with a lost lock": {
			incident.Deleted, incident.Effect{Failures: 1, Committed: 1},
			"orders: 1 operation was committed though its lock was lost; locks were removed from Redis",
			"1 operation was committed though its lock was lost, and no second writer got at rows that a unique index or a version covers; cause deleted, confidence high, state new; 1 failure in 7 events on 3 keys",
		},
		"without a lock, as is allowed": {
			incident.Restart, incident.Effect{Without: 302},
			"orders: the database alone guarded 302 operations; a Redis process ended, and its memory with it",
			"302 operations were committed without a lock, guarded by the database alone; cause restart, confidence high, state new; 7 events on 3 keys",
		},
		"with a lock and without one": {
			incident.Restart, incident.Effect{Failures: 1, Undone: 1, Without: 2},
			"orders: the database alone guarded 2 operations; a Redis process ended, and its memory with it",
			"1 operation was rolled back and changed nothing. 2 operations were committed without a lock, guarded by the database alone; cause restart, confidence high, state new; 1 failure in 7 events on 3 keys",
		},
		"an outage begins": {
			incident.DegradedPeer, incident.Effect{},
			"orders: an instance worked without locks",
			"cause degraded_peer, confidence high, state new; 7 events on 3 keys",
		},
		"refused for want of a lock": {
			incident.Restart, incident.Effect{Refused: 7780},
			"orders: Redis is down: 7,780 operations refused",
			"7,780 operations were refused and changed nothing; cause restart, confidence high, state new; 7 events on 3 keys",
		},
		"refused one": {
			incident.Unreachable, incident.Effect{Refused: 1},
			"orders: Redis cannot be reached: 1 operation refused",
			"1 operation was refused and changed nothing; cause unreachable, confidence high, state new; 7 events on 3 keys",
		},
		"refused and in doubt": {
			incident.Partition, incident.Effect{Refused: 81, Failures: 3, Unknown: 1, Undone: 2},
			"orders: look at 1 operation; Redis does not answer: 81 operations refused",
			"look at 1 operation, which may or may not have been committed. 2 operations were rolled back and changed nothing. " +
				"81 operations were refused and changed nothing; cause partition, confidence high, state new; 3 failures in 7 events on 3 keys",
		},
		"a failover that lost no lock": {
			incident.Failover, incident.Effect{Refused: 81},
			"orders: Redis failover: 81 operations refused",
			"81 operations were refused and changed nothing; cause failover, confidence high, state new; 7 events on 3 keys",
		},
		"a failover in which nobody had a lock": {
			incident.Failover, incident.Effect{Without: 2},
			"orders: the database alone guarded 2 operations; a Redis failover",
			"2 operations were committed without a lock, guarded by the database alone; cause failover, confidence high, state new; 7 events on 3 keys",
		},
		"a failover that lost locks": {
			incident.Failover, incident.Effect{Failures: 1, Undone: 1},
			"orders: nothing was changed; a Redis failover lost locks",
			"1 operation was rolled back and changed nothing; cause failover, confidence high, state new; 1 failure in 7 events on 3 keys",
		},
	} {
		i := incident.Incident{Service: "orders", Cause: tt.cause, Confidence: incident.High, State: incident.New, Events: 7, Keys: 3, Effect: tt.effect}
		if summary, description := dispatch.Words(&i); summary != tt.summary || description != tt.description {
			t.Errorf("%s:\n%s\n%s\nwant\n%s\n%s", name, summary, description, tt.summary, tt.description)
		}
	}
}
