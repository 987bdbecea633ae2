package incident_test

import (
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

// More happened to a Redis than is read at once: that nothing was seen to happen
// to the lock's node is not known then.
func TestTooMuchToReadIsNotNothing(t *testing.T) {
	b := newBench(t)
	b.saw(failover(-2))
	noise := make([]watch.Entry, store.MaxRows)
	for i := range noise {
		noise[i] = watch.Entry{Kind: watch.Agreed, Cluster: "main", Node: "other:1", At: b.now, Since: b.now}
	}
	if err := b.store.AddEntries(t.Context(), noise); err != nil {
		t.Fatal(err)
	}
	b.send("a", func(ev *notify.Event) { ev.HolderAtConflict = notify.HolderSelf })
	b.round(0)
	if i := b.incidents(1)[0]; i.Cause != incident.Unknown {
		t.Errorf("cause %s: %v", i.Cause, i.Evidence)
	}
}

// The late holder of a hot key is found among many others.
func TestLateHolderOfAHotKey(t *testing.T) {
	b := newBench(t)
	b.send("hot", func(ev *notify.Event) {
		ev.Verdict, ev.Outcome, ev.HolderAtConflict = notify.VerdictLost, notify.OutcomeCommitted, ""
		ev.Owner, ev.Loss = "late", notify.LossMaxHold
	})
	for range 150 {
		b.now = b.now.Add(time.Millisecond)
		b.send("hot", func(ev *notify.Event) { ev.HolderAtConflict = notify.HolderSelf })
	}
	b.round(0)
	if i := b.incidents(1)[0]; i.Cause != incident.Overrun || i.Events != 151 {
		t.Errorf("cause %s of %d events: %v", i.Cause, i.Events, i.Evidence)
	}
}
