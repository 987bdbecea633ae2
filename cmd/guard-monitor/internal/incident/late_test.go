package incident_test

import (
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/notify"
)

// TestLateFact: the event is there before the watcher has seen why.
func TestLateFact(t *testing.T) {
	b := newBench(t)
	b.send("a", nil)
	b.round(0)
	before := b.incidents(1)[0]
	if before.Cause != incident.Unknown {
		t.Fatalf("cause %s, want unknown", before.Cause)
	}
	b.saw(failover(0.5))
	b.round(5 * time.Second)
	after := b.incidents(1)[0]
	if after.ID != before.ID || after.Cause != incident.Failover || after.Confidence != incident.High || after.DocLink != "docs/alerts/failover.md" {
		t.Errorf("the incident is now %+v", after)
	}
	b.send("b", nil)
	b.round(5 * time.Second)
	if i := b.incidents(1)[0]; i.Events != 2 || i.Keys != 2 {
		t.Errorf("the next event of the failover is not in it: %+v", i)
	}
}

// TestLateFactMerges: the incident that the events belong to is there already.
func TestLateFactMerges(t *testing.T) {
	b := newBench(t)
	b.saw(failover(-2))
	b.send("a", nil)
	b.round(0)
	b.now = b.now.Add(5 * time.Minute)
	b.send("b", nil)
	b.round(0)
	b.saw(failover(0.5))
	b.round(5 * time.Second)
	list := b.incidents(2)
	if list[0].Events != 2 || list[0].Cause != incident.Failover {
		t.Errorf("the failover is %+v, want both events", list[0])
	}
	if list[1].State != incident.Resolved || list[1].MergedInto != list[0].ID || list[1].Events != 0 {
		t.Errorf("the other is %+v, want it merged", list[1])
	}
	b.now = b.now.Add(time.Minute)
	b.send("c", nil) // again unknown: not into the one that was merged
	b.round(5 * time.Second)
	if i := b.incidents(3)[2]; i.Cause != incident.Unknown || i.Events != 1 {
		t.Errorf("the next unknown is %+v", i)
	}
}

// TestLateFactSplits: what it explains leaves, the rest stays as it was.
func TestLateFactSplits(t *testing.T) {
	b := newBench(t)
	b.send("a", nil)
	b.round(0)
	b.now = b.now.Add(3 * time.Minute)
	b.send("b", nil)
	b.round(0)
	if i := b.incidents(1)[0]; i.Events != 2 {
		t.Fatalf("%d events, want 2", i.Events)
	}
	b.saw(failover(0.5))
	b.round(5 * time.Second)
	list := b.incidents(2)
	if list[0].Cause != incident.Unknown || list[0].Events != 1 || list[1].Cause != incident.Failover || list[1].Events != 1 {
		t.Errorf("incidents %+v", list)
	}
}

// TestLateHolder: who wrote without the lock tells so himself, a moment later.
func TestLateHolder(t *testing.T) {
	b := newBench(t)
	b.send("a", intruded)
	b.round(0)
	if i := b.incidents(1)[0]; i.Cause != incident.Bypass {
		t.Fatalf("cause %s, want bypass", i.Cause)
	}
	b.send("a", func(ev *notify.Event) {
		expired(ev)
		ev.Owner, ev.Outcome = "b:1", notify.OutcomeCommitted
	})
	b.round(5 * time.Second)
	list := b.incidents(2)
	var cause incident.Cause
	for _, i := range list {
		if i.State.Open() {
			cause = i.Cause
			if i.Events != 2 {
				t.Errorf("%d events in the open incident, want both", i.Events)
			}
		}
	}
	if cause != incident.Overrun {
		t.Errorf("cause %s, want overrun", cause)
	}
}
