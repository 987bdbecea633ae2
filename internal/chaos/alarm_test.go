package chaos_test

import (
	"slices"
	"strings"

	"github.com/belaygo/belay/notify"
)

// alarms are the events which say that the call's lock failed.
func (c *call) alarms() (events []*notify.Event) {
	for _, e := range c.events {
		if e.Verdict == notify.VerdictOverlap || e.Verdict == notify.VerdictLost {
			events = append(events, e)
		}
	}
	return events
}

// foundAnother reports whether the call's write was refused because of another
// one's. On PostgreSQL a read can find that, before the call has written.
func (c *call) foundAnother() bool { return c.count(notify.VerdictOverlap) > 0 }

func (c *call) count(v notify.Verdict) (n int) {
	for _, e := range c.events {
		if e.Verdict == v {
			n++
		}
	}
	return n
}

// tellsUnknown reports whether an event is about a commit of unknown outcome.
func tellsUnknown(e *notify.Event) bool {
	return e.Outcome == notify.OutcomeUnknown && e.Verdict != notify.VerdictDegraded
}

// falseAlarm reports whether a call reported a failure without a reason. A reason
// is a fault of its lock, another call that had the lock at the same time or wrote
// without it, and another call of an earlier or later lock whose outcome is open. For a commit of unknown outcome
// the reason is a connection that was cut, by the worker too, or a fault of the worker.
func (h *history) falseAlarm(c *call, overlaps []overlap) bool {
	if c.count(notify.VerdictUnknownCommit) > 0 && !c.lost && !slices.ContainsFunc(h.faults, func(f fault) bool {
		return (f.Kind == cut || f.Subject == c.worker) && f.From <= c.caught && f.To >= c.begun
	}) {
		return true
	}
	if len(c.alarms()) == 0 {
		return false
	}
	if slices.ContainsFunc(overlaps, func(o overlap) bool { return o.first == c || o.second == c }) {
		return false
	}
	if c.grant == nil {
		return true
	}
	if c.lapsed() {
		return false
	}
	if slices.ContainsFunc(h.byKey[c.key], func(other *call) bool {
		return other.wrote > 0 && other.wrote <= c.caught && h.over(other) >= c.grant.asked &&
			(other.grant == nil || other.open() && other.grant != c.grant)
	}) {
		return false
	}
	return !slices.ContainsFunc(h.faults, func(f fault) bool {
		return f.hit(c.grant) && f.From <= c.caught && f.To >= c.grant.asked
	})
}

// lapsed reports whether the call's lease was lost because no renewal was answered in
// time, as on a machine with too much to do: a little before its grant ends, or when an
// answer had come that the Locker was not told of yet.
func (c *call) lapsed() bool {
	const little = int64(ttl) / 10
	return c.grant != nil && (c.caught >= c.grant.expiry()-little || c.grant.renewed > 0 && c.caught-c.grant.renewed < little) &&
		slices.ContainsFunc(c.alarms(), func(e *notify.Event) bool {
			return e.Verdict == notify.VerdictLost && e.Loss == notify.LossUnrenewed
		})
}

func (f fault) hit(g *grant) bool {
	switch f.Kind {
	case wipe:
		return f.Subject == g.key
	case failover:
		return f.Subject == g.node
	case cut: // a connection is no lock
		return false
	case pause, kill:
	}
	return f.Subject == g.worker
}

// cutWords are the drivers' and the servers' for a connection that was cut.
var cutWords = []string{
	"invalid connection", "bad connection", "Connection was killed", "interrupted",
	"terminating connection", "unexpected EOF", "conn closed", "connection reset", "broken pipe",
	"Deadlock found", "deadlock detected", // of two that waited for its insert
}

// failedUnexplained reports whether the call ended with an error that is not one
// of Do's, nor of a connection that was cut.
func (c *call) failedUnexplained() bool {
	return strings.HasPrefix(c.result, failed) &&
		!slices.ContainsFunc(cutWords, func(s string) bool { return strings.Contains(c.result, s) })
}
