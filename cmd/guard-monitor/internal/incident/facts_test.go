package incident_test

import (
	"fmt"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
	"github.com/belaygo/belay/notify"
)

var caught = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// sec is a time in seconds before or after the event was caught.
func sec(s float64) time.Time { return caught.Add(time.Duration(s * float64(time.Second))) }

// overlap is an event of a holder who had the lock for 5 s of its 30.
func overlap(change func(*notify.Event)) notify.Event {
	ev := notify.Event{
		ID: "1", Service: "orders", Instance: "orders-1", Verdict: notify.VerdictOverlap, Outcome: notify.OutcomeRefused,
		Key: "order:1", Owner: "a:1", AcquiredAt: sec(-5), TTL: 30 * time.Second, Deadline: sec(24), CaughtAt: caught,
		Place: notify.Place{Node: oldMaster, Slot: slot}, HolderAtConflict: notify.HolderNone, Loss: notify.LossGone, Count: 1,
	}
	if change != nil {
		change(&ev)
	}
	return ev
}

func intruded(ev *notify.Event) { ev.HolderAtConflict, ev.Loss = notify.HolderSelf, "" }

func expired(ev *notify.Event) {
	ev.Verdict, ev.Outcome, ev.HolderAtConflict = notify.VerdictLost, notify.OutcomeRolledBack, ""
	ev.Loss, ev.AcquiredAt, ev.Deadline = notify.LossExpired, sec(-40), sec(-11)
}

// refused is an event of operations that were refused without a lock.
func refused() notify.Event {
	return notify.Event{ID: "1", Service: "orders", Instance: "orders-1", Verdict: notify.VerdictUnavailable, Outcome: notify.OutcomeRolledBack,
		Key: "order:1", CaughtAt: caught, Place: notify.Place{Node: oldMaster, Slot: slot}, Count: 7}
}

func unrenewed(ev *notify.Event) {
	expired(ev)
	ev.Loss = notify.LossUnrenewed
}

func entry(kind watch.Kind, at float64, change func(*watch.Entry)) watch.Entry {
	e := watch.Entry{At: sec(at), Since: sec(at - 1), Kind: kind, Cluster: "main", Shard: shard, Node: oldMaster, Numbers: map[string]int64{}}
	if change != nil {
		change(&e)
	}
	return e
}

// said is a row of evidence in English; an entry has its kind and second at its end.
func said(e incident.Evidence) string {
	s := words.English.Evidence(e)
	if e.Entry != nil {
		s += fmt.Sprintf(" (%s at %v)", e.Entry.Kind, e.Entry.At.Sub(caught).Seconds())
	}
	return s
}

func failover(at float64) watch.Entry {
	return entry(watch.Failover, at, func(e *watch.Entry) {
		e.Node, e.Peer = newMaster, oldMaster
		e.Numbers = map[string]int64{watch.OldEpoch: 1, watch.NewEpoch: 7, watch.LostBytes: 120}
	})
}

func down(at float64, refused int64) watch.Entry {
	return entry(watch.Down, at, func(e *watch.Entry) { e.Numbers[watch.Refused] = refused })
}

// up ends a silence that began at from.
func up(from, at float64, same int64) watch.Entry {
	return entry(watch.Up, at, func(e *watch.Entry) {
		e.Since = sec(from)
		e.Numbers[watch.SilentMS], e.Numbers[watch.SameProcess] = int64((at-from)*1000), same
	})
}

func restart(at float64) watch.Entry {
	return entry(watch.Restart, at, func(e *watch.Entry) {
		e.Numbers[watch.WasMaster], e.Numbers[watch.KeysBefore], e.Numbers[watch.KeysAfter] = 1, 10, 0
	})
}

func evicted(at float64) watch.Entry {
	return entry(watch.Eviction, at, func(e *watch.Entry) { e.Numbers[watch.Evicted] = 3 })
}

func flushed(at float64, command string) watch.Entry {
	return entry(watch.Flush, at, func(e *watch.Entry) { e.Numbers[command] = 1 })
}

func deleted(at float64, routine int64) watch.Entry {
	return entry(watch.Deletion, at, func(e *watch.Entry) { e.Numbers["del"], e.Numbers[watch.Routine] = 1, routine })
}

func clockSet(at float64, forward int64) watch.Entry {
	return entry(watch.ClockSet, at, func(e *watch.Entry) { e.Numbers[watch.ForwardMS] = forward })
}

// restartOver is a restart of a node that was away from a time on.
func restartOver(from, at float64) watch.Entry {
	e := restart(at)
	e.Since = sec(from)
	return e
}

func on(node string, e watch.Entry) watch.Entry {
	e.Node, e.Shard = node, "0-5460"
	return e
}
