package incident_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
	"github.com/belaygo/belay/notify"
)

func evidence(i incident.Incident) string {
	var b strings.Builder
	for _, e := range i.Evidence {
		fmt.Fprintln(&b, e.Node, said(e))
	}
	return b.String()
}

// Evidence is brought up to date though its confidence stays.
func TestEvidenceIsBroughtUpToDate(t *testing.T) {
	b := newBench(t)
	b.saw(down(-1, 1))
	b.send("k", func(ev *notify.Event) {
		ev.Verdict, ev.Outcome, ev.HolderAtConflict, ev.Loss = notify.VerdictDegraded, notify.OutcomeUnknown, "", ""
	})
	b.round(0)
	before := b.incidents(1)[0]
	if got := evidence(before); !strings.Contains(got, "not seen to come back") {
		t.Fatalf("evidence\n%s", got)
	}
	b.saw(up(-1, 0, 0))
	b.round(6 * time.Second)
	after := b.incidents(1)[0]
	if got := evidence(after); strings.Contains(got, "not seen to come back") || !strings.Contains(got, "answers again") || after.Confidence != before.Confidence {
		t.Errorf("evidence\n%s", got)
	}
	b.saw(evicted(0)) // what changes nothing about it
	b.round(6 * time.Second)
	if again := b.incidents(1)[0]; !again.UpdatedAt.Equal(after.UpdatedAt) {
		t.Errorf("updated at %v, want %v", again.UpdatedAt, after.UpdatedAt)
	}
}

// A node that dies again while its first death is still an incident is down: the evidence is
// about the last time.
func TestSecondDeath(t *testing.T) {
	for name, back := range map[string]func() watch.Entry{
		"restarted": func() watch.Entry { return restartOver(-1, 0) },
		"answers":   func() watch.Entry { return up(-1, 0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			dies := func() {
				b.saw(down(-1, 1))
				b.send("k", withoutLock)
				b.round(6 * time.Second)
			}
			title := func(want string) {
				t.Helper()
				i := b.incidents(1)[0]
				if got := words.English.Title(i); got != want {
					t.Errorf("%q, want %q:\n%s", got, want, evidence(i))
				}
			}
			dies()
			title("Redis is down")
			b.saw(back())
			b.round(6 * time.Second)
			title("Redis was down")
			b.round(10 * time.Second)
			dies()
			title("Redis is down")
			b.round(6 * time.Second)
			title("Redis is down")
			b.saw(back())
			b.round(6 * time.Second)
			title("Redis was down")
		})
	}
}

// The evidence of an incident is about one of its own events.
func TestEvidenceLeavesWithItsEvent(t *testing.T) {
	b := newBench(t)
	b.send("old", nil)
	b.now = b.now.Add(2 * time.Minute)
	b.send("new", nil)
	b.round(0)
	if got := evidence(b.incidents(1)[0]); !strings.Contains(got, `"old"`) {
		t.Fatalf("evidence\n%s", got)
	}
	b.saw(failover(-121))
	b.round(6 * time.Second)
	list := b.incidents(2)
	if got := evidence(list[0]); list[0].Cause != incident.Unknown || !strings.Contains(got, `"new"`) || strings.Contains(got, `"old"`) {
		t.Errorf("%s: evidence\n%s", list[0].Cause, got)
	}
	if got := evidence(list[1]); list[1].Cause != incident.Failover || !strings.Contains(got, `"old"`) {
		t.Errorf("%s: evidence\n%s", list[1].Cause, got)
	}
}

// A clock that is half a minute off accuses nobody of a bypass: two heartbeats
// tell how it goes.
func TestClockThatIsOff(t *testing.T) {
	for _, off := range []time.Duration{-30 * time.Second, 30 * time.Second} {
		b := newBench(t)
		beat := func() {
			b.t.Helper()
			h := incident.Heartbeat{Service: "orders", Instance: "off", At: b.now.Add(off), Every: 10 * time.Second, ReceivedAt: b.now}
			if err := b.store.AddHeartbeat(t.Context(), h); err != nil {
				t.Fatal(err)
			}
		}
		beat()
		b.round(10 * time.Second)
		b.send("k", intruded)
		b.send("k", func(ev *notify.Event) {
			expired(ev)
			ev.Instance, ev.Owner, ev.Outcome = "off", "b:1", notify.OutcomeCommitted
			ev.AcquiredAt, ev.Deadline, ev.CaughtAt = sec(-8).Add(off), sec(-5).Add(off), sec(-4).Add(off)
			ev.TTL = 3 * time.Second
		})
		b.round(0)
		if i := b.incidents(2)[0]; i.Cause != incident.Bypass {
			t.Fatalf("%v off, not known yet: cause %s, want bypass", off, i.Cause)
		}
		beat()
		b.round(10 * time.Second)
		for _, i := range b.incidents(2) {
			if i.State.Open() && (i.Cause != incident.Overrun || i.Events != 2) {
				t.Errorf("%v off: cause %s of %d events, want both overrun:\n%s", off, i.Cause, i.Events, evidence(i))
			}
		}
	}
}

// One heartbeat that is held up says nothing against a clock that is known.
func TestHeartbeatHeldUp(t *testing.T) {
	b := newBench(t)
	const off = 30 * time.Second
	beat := func(late time.Duration) {
		b.t.Helper()
		h := incident.Heartbeat{Service: "orders", Instance: "orders-1", At: b.now.Add(-late - off), Every: 10 * time.Second, ReceivedAt: b.now}
		if err := b.store.AddHeartbeat(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		b.round(10 * time.Second)
	}
	beat(0)
	beat(0)
	b.send("k", func(ev *notify.Event) {
		intruded(ev)
		ev.AcquiredAt, ev.Deadline, ev.CaughtAt = ev.AcquiredAt.Add(-off), ev.Deadline.Add(-off), ev.CaughtAt.Add(-off)
	})
	b.round(0)
	before := b.incidents(1)[0]
	if got := evidence(before); !strings.Contains(got, "corrected") {
		t.Fatalf("evidence\n%s", got)
	}
	for _, late := range []time.Duration{2 * time.Second, 0, 0} {
		beat(late)
		if i := b.incidents(1)[0]; !i.UpdatedAt.Equal(before.UpdatedAt) {
			t.Fatalf("after a heartbeat %v late: updated, %s", late, evidence(i))
		}
	}
	beat(-off) // the clock is set right
	beat(-off)
	if i := b.incidents(1)[0]; strings.Contains(evidence(i), "corrected") {
		t.Errorf("the clock goes right\n%s", evidence(i))
	}
}
