package dispatch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/dispatch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

func TestLife(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.save("1", "orders", incident.New)
		n.expect(8 * time.Second)
		n.save("2", "orders", incident.New)
		n.expect(4*time.Second, "first notification: firing 2")
		n.expect(3 * time.Hour)
		n.save("3", "orders", incident.New)
		n.expect(2*time.Second, "new alerts added: firing 3")
		n.save("4", "orders", incident.New)
		n.expect(4 * time.Minute)
		n.expect(time.Minute+2*time.Second, "new alerts added: firing 4")
		n.expect(4*time.Hour, "repeat interval elapsed: firing 4")
		n.save("1", "orders", incident.Resolved)
		n.expect(6*time.Minute, "some alerts resolved: firing 4")
		for _, id := range []string{"2", "3", "4"} {
			n.save(id, "orders", incident.Resolved)
		}
		n.expect(6*time.Minute, "all alerts resolved: resolved 3")
		n.expect(12 * time.Hour)
		n.save("4", "orders", incident.Regressed, func(i *incident.Incident) { i.Regressed = 1 })
		n.expect(15*time.Second, "first notification: firing 1")
	})
}

func TestGroups(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.save("1", "orders", incident.New)
		n.save("2", "stock", incident.New)
		n.expect(15*time.Second, "first notification: firing 1", "first notification: firing 1")
	})
	inBubble(t, func(r *dispatch.Route) { r.GroupBy = nil }, func(n *night) {
		n.save("1", "orders", incident.New)
		n.save("2", "stock", incident.New)
		n.expect(15*time.Second, "first notification: firing 2")
	})
}

// What got worse and what was explained is told without waiting.
func TestWorseAndExplained(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.save("1", "orders", incident.New, func(i *incident.Incident) { i.Cause = incident.Unknown })
		n.expect(15*time.Second, "first notification: firing 1")
		n.save("1", "orders", incident.Ongoing)
		n.expect(2*time.Second, "cause found: firing 1")
		n.save("1", "orders", incident.Escalating)
		n.expect(2*time.Second, "escalated: firing 1")
		n.save("1", "orders", incident.Ongoing)
		n.save("1", "orders", incident.Escalating)
		n.expect(10 * time.Minute)
	})
}

// An outage that goes on is told with its numbers as they double, and at once when it has
// become critical.
func TestRefusedOperations(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		refused := func(count int64, change ...func(*incident.Incident)) {
			n.save("1", "orders", incident.Ongoing, append(change, func(i *incident.Incident) {
				i.Effect.Refused, i.Rate.Refused = count, count
			})...)
		}
		refused(3)
		n.expect(15*time.Second, "first notification: firing 1")
		refused(36)
		n.expect(2*time.Second, "escalated: firing 1")
		refused(81)
		n.expect(4 * time.Minute)
		n.expect(time.Minute+2*time.Second, "more operations: firing 1")
		refused(161)
		n.expect(time.Hour)
		refused(7780)
		n.expect(2*time.Second, "more operations: firing 1")
		refused(70_000, acked)
		n.expect(time.Hour)
		n.save("1", "orders", incident.Resolved, func(i *incident.Incident) { i.Effect.Refused = 70_001 })
		n.expect(6*time.Minute, "all alerts resolved: resolved 1")
	})
}

// An incident that goes on is sent again with its numbers as they double, whatever failed.
func TestGrowingFailures(t *testing.T) {
	for name, set := range map[string]func(*incident.Effect, int64){
		"failures":       func(e *incident.Effect, n int64) { e.Failures, e.Undone = n, n },
		"without a lock": func(e *incident.Effect, n int64) { e.Without = n },
		"beside others":  func(e *incident.Effect, n int64) { e.Failures, e.Undone, e.Refused = n, n, 9000 },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(n *night) {
				counts := func(count int64, change ...func(*incident.Incident)) {
					n.save("1", "orders", incident.Ongoing, append(change, func(i *incident.Incident) { set(&i.Effect, count) })...)
				}
				counts(3)
				n.expect(15*time.Second, "first notification: firing 1")
				counts(6)
				n.expect(4 * time.Minute)
				n.expect(time.Minute+2*time.Second, "more operations: firing 1")
				counts(11)
				n.expect(time.Hour)
				n.stop()
				n.start()
				counts(12)
				n.expect(2*time.Second, "more operations: firing 1")
				counts(9000, acked)
				n.expect(time.Hour)
			})
		})
	}
}

// What came back is compared with what has failed since.
func TestGrowingFailuresOfTheReturn(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		counts := func(all, since int64) {
			n.save("1", "orders", incident.Regressed, func(i *incident.Incident) {
				i.Regressed = 1
				i.Effect.Failures, i.Rate.Failures = all, since
			})
		}
		counts(1003, 3)
		n.expect(15*time.Second, "first notification: firing 1")
		counts(1006, 6)
		n.expect(6*time.Minute, "more operations: firing 1")
	})
}

// A failure a second makes five messages in an hour.
func TestSteadyFailures(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		for second := range int64(3600) {
			n.save("1", "orders", incident.Ongoing, func(i *incident.Incident) { i.Effect.Failures = second + 1 })
			<-time.After(time.Second) // on the bubble's clock
		}
		if got := n.inbox.take(); len(got) > 6 {
			t.Errorf("told %q", got)
		}
	})
}

// An incident that was over before anybody could be told is told all the same.
func TestShort(t *testing.T) {
	for _, resolved := range []bool{true, false} {
		inBubble(t, func(r *dispatch.Route) { r.Resolved = resolved }, func(n *night) {
			n.save("1", "orders", incident.New)
			n.save("1", "orders", incident.Resolved)
			n.save("2", "orders", incident.Resolved, func(i *incident.Incident) { i.MergedInto = "1" })
			n.expect(15*time.Second, "first notification: resolved 1")
			n.expect(24 * time.Hour)
		})
	}
}

// An incident that came back, and was over again before anybody could be told, is
// told all the same.
func TestShortAgain(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.save("1", "orders", incident.New)
		n.expect(15*time.Second, "first notification: firing 1")
		n.save("1", "orders", incident.Resolved)
		n.expect(6*time.Minute, "all alerts resolved: resolved 1")
		n.save("1", "orders", incident.Resolved, func(i *incident.Incident) { i.OpenedAt = time.Now() })
		n.expect(15*time.Second, "first notification: resolved 1")
		n.expect(24 * time.Hour)
	})
}

func TestNoResolved(t *testing.T) {
	inBubble(t, func(r *dispatch.Route) { r.Resolved = false }, func(n *night) {
		n.save("1", "orders", incident.New)
		n.expect(15*time.Second, "first notification: firing 1")
		n.save("1", "orders", incident.Resolved)
		n.expect(time.Hour)
		n.save("1", "orders", incident.Regressed)
		n.expect(15*time.Second, "first notification: firing 1")
	})
}

func TestAcknowledge(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.save("1", "orders", incident.New)
		n.expect(15*time.Second, "first notification: firing 1")
		n.save("1", "orders", incident.Ongoing, acked)
		n.expect(24 * time.Hour)
		n.save("1", "orders", incident.Escalating, acked)
		n.expect(2*time.Second, "escalated: firing 1")
	})
}

func acked(i *incident.Incident) { i.AckedBy = "ann" }

func TestSilence(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.save("1", "orders", incident.New, silenced)
		n.save("2", "stock", incident.New)
		n.expect(15*time.Second, "first notification: firing 1")
		n.expect(time.Hour)
		n.save("1", "orders", incident.Ongoing)
		n.expect(15*time.Second, "first notification: firing 1")
	})
}

// What began and ended under a silence is not told when the silence ends, nor is
// the end of what was told before.
func TestSilenceHasTheEnd(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.save("1", "orders", incident.New)
		n.expect(15*time.Second, "first notification: firing 1")
		for _, id := range []string{"1", "2"} {
			n.save(id, "orders", incident.Ongoing, silenced)
		}
		n.expect(time.Hour)
		for _, id := range []string{"1", "2"} {
			n.save(id, "orders", incident.Resolved, silenced)
		}
		n.expect(time.Hour)
		for _, id := range []string{"1", "2"} {
			n.save(id, "orders", incident.Resolved)
		}
		n.expect(time.Hour)
		n.save("2", "orders", incident.Regressed)
		n.expect(15*time.Second, "first notification: firing 1")
	})
}

func silenced(i *incident.Incident) { i.Silences = make([]incident.Silence, 1) }

// After a restart nothing is told again, and nothing is forgotten.
func TestRestart(t *testing.T) {
	inBubble(t, nil, func(n *night) {
		n.save("1", "orders", incident.New)
		n.expect(15*time.Second, "first notification: firing 1")
		n.stop()
		n.save("2", "stock", incident.New) // stored, and killed before the alert
		n.start()
		n.expect(15*time.Second, "first notification: firing 1")
		n.stop()
		n.start()
		n.expect(3 * time.Hour)
		n.expect(time.Hour+time.Minute, "repeat interval elapsed: firing 1", "repeat interval elapsed: firing 1")
	})
}

// What the log has from before a clock was set back keeps nobody waiting, and
// nobody is told the same all the time.
func TestClockSetBack(t *testing.T) {
	for _, continuous := range []bool{false, true} {
		inBubble(t, func(r *dispatch.Route) { r.Continuous, r.RepeatInterval = continuous, time.Hour }, func(n *night) {
			n.stop()
			n.save("1", "orders", incident.Ongoing)
			n.store.log = []store.Notification{{
				At: time.Now().Add(12 * time.Hour), Receiver: "night", Incident: "1", State: incident.New, Cause: incident.Failover,
			}}
			n.start()
			n.expect(2*time.Second, "repeat interval elapsed: firing 1")
			n.expect(time.Hour+2*time.Second, "repeat interval elapsed: firing 1")
			n.save("2", "orders", incident.New)
			n.expect(6*time.Minute, "new alerts added: firing 2")
			n.save("3", "stock", incident.Resolved, func(i *incident.Incident) { i.OpenedAt = time.Now().Add(9 * time.Hour) })
			n.expect(time.Minute, "first notification: resolved 1")
		})
	}
}

// Alertmanager hears of what goes on all the time, and the log does not grow.
func TestContinuous(t *testing.T) {
	inBubble(t, func(r *dispatch.Route) {
		r.Continuous, r.GroupBy, r.GroupWait, r.GroupInterval, r.RepeatInterval = true, nil, 0, 0, time.Minute
	}, func(n *night) {
		n.save("1", "orders", incident.New)
		n.expect(2*time.Second, "first notification: firing 1")
		n.save("1", "orders", incident.Ongoing, acked)
		n.expect(time.Minute+2*time.Second, "repeat interval elapsed: firing 1")
		n.save("2", "orders", incident.New)
		n.expect(2*time.Second, "new alerts added: firing 2")
		n.expect(time.Minute+2*time.Second, "repeat interval elapsed: firing 2")
		n.save("1", "orders", incident.Resolved)
		n.expect(2*time.Second, "some alerts resolved: firing 2")
		n.save("2", "orders", incident.Resolved)
		n.expect(2*time.Second, "all alerts resolved: resolved 1")
		n.expect(time.Hour)
		if log := n.store.log; len(log) != 6 {
			t.Errorf("log %+v", log)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	ok := dispatch.Route{To: &inbox{}, RepeatInterval: time.Hour}
	for want, cfg := range map[string]dispatch.Config{
		"Config.Store":  {},
		"Routes[0].To":  {Store: &memory{}, Routes: []dispatch.Route{{}}},
		"is taken":      {Store: &memory{}, Routes: []dispatch.Route{ok, ok}},
		"RepeatInterva": {Store: &memory{}, Routes: []dispatch.Route{{To: &inbox{}}}},
	} {
		if _, err := dispatch.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want %q named", err, want)
		}
	}
}

func TestMetrics(t *testing.T) {
	d, err := dispatch.New(dispatch.Config{Store: &memory{}, Routes: []dispatch.Route{{To: &inbox{}, RepeatInterval: time.Hour}}})
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(d)
	families, err := registry.Gather()
	if err != nil || len(families) != 3 {
		t.Errorf("metrics %v, %v", families, err)
	}
}
