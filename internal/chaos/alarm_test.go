package chaos_test

import (
	"slices"
	"strings"
	"testing"
	"time"

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

// failures are those events which say that a lock failed, or that an outcome is unknown.
func failures(events []*notify.Event) []*notify.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e *notify.Event) bool {
		return e.Verdict != notify.VerdictOverlap && e.Verdict != notify.VerdictLost && e.Verdict != notify.VerdictUnknownCommit
	})
}

// foundAnother reports whether the call's write was refused because of another
// one's. On PostgreSQL a read can find that, before the call has written.
func (c *call) foundAnother() bool { return c.count(notify.VerdictOverlap) > 0 || c.result == conflict }

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
// without it, and another call of an earlier or later lock whose outcome is open. For a
// commit of unknown outcome the reason is that its connection broke, or a fault of the
// worker.
func (h *history) falseAlarm(c *call, overlaps []overlap) bool {
	if c.count(notify.VerdictUnknownCommit) > 0 && !h.broke(c, c.caught) && !slices.ContainsFunc(h.faults, func(f fault) bool {
		return f.Subject == c.worker && f.From <= c.caught && f.To >= c.begun
	}) {
		return true
	}
	if len(c.alarms()) == 0 {
		return false
	}
	if c.grant == nil {
		return !inOverlap(c, overlaps)
	}
	if c.lapsed() || h.contended(c, c.caught, overlaps) {
		return false
	}
	return !slices.ContainsFunc(h.faults, func(f fault) bool {
		return f.hit(c.grant) && f.From <= c.caught && f.To >= c.grant.asked
	})
}

// broke reports whether the connection of the call broke while its last attempt ran, until
// then: its COMMIT was lost, its session ended, or the database was killed.
func (h *history) broke(c *call, until int64) bool {
	return c.lost != "" || slices.ContainsFunc(h.faults, func(f fault) bool {
		mine := f.Kind == databaseKilled || f.Kind == cut && f.Subject == c.session.String() ||
			f.Kind.ofBed() && (c.unheard() || c.doubtful) || c.unheard() && f.Kind == cut && c.session.pooled()
		after := ending
		if c.doubtful && strings.HasPrefix(f.Subject, "group-") {
			after = viewed
		}
		return mine && f.From <= until && f.To+int64(after) >= c.attempt
	})
}

// viewed is how long after a change of its group a connection may have the view before it, by
// which a refusal at COMMIT proves nothing.
const viewed = time.Minute

// unheard reports whether a statement of the last attempt got no answer.
func (c *call) unheard() bool { return c.broken > 0 && c.broken >= c.attempt }

// ending is how long a session may go on that was told to end.
const ending = time.Second

func inOverlap(c *call, overlaps []overlap) bool {
	return slices.ContainsFunc(overlaps, func(o overlap) bool { return o.early == c || o.late == c })
}

// contended reports whether another call may have written the row of c, which has or had a
// lock, from when c asked for it until then. One with a lock of its own may have done so if
// nobody knows when it ended, or if that was after c's lock was granted: c's snapshot may be
// older than the time at which its begin was noted.
func (h *history) contended(c *call, until int64, overlaps []overlap) bool {
	return inOverlap(c, overlaps) || slices.ContainsFunc(h.byKey[c.key], func(other *call) bool {
		return other.wrote > 0 && other.wrote <= until && h.over(other) >= c.grant.asked &&
			(other.grant == nil || other.grant != c.grant && (other.open() || h.over(other) > c.grant.granted))
	})
}

// lapsed reports whether the call's lease was lost because no renewal was answered in
// time, as on a machine with too much to do: a little before its grant ends, counted from the last request as a
// lease is, or when an answer had come that the Locker was not told of yet.
func (c *call) lapsed() bool {
	const little = int64(ttl) / 10
	return c.grant != nil && (c.caught >= max(c.grant.asked, c.grant.renewing)+int64(ttl)-little || c.grant.renewed > 0 && c.caught-c.grant.renewed < little) &&
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
	case pause, kill:
		return f.Subject == g.worker
	}
	return false // nothing else is a lock
}

// deadlockWords are the servers' for a deadlock, of two that waited for an insert, say,
// cutWords theirs and the drivers' for a connection that was cut, and awayWords those for a
// server that is dead or not yet ready.
var (
	deadlockWords = []string{"Deadlock found", "deadlock detected", "Lock deadlock"} // the third one at COMMIT, in a group

	cutWords = []string{
		"invalid connection", "bad connection", "connection is already closed", "Connection was killed", "interrupted",
		"terminating connection", "unexpected EOF", "conn closed", "connection reset", "broken pipe",
		"use of closed network connection", "failed to connect", // when the answer to a handshake is cut
	}
	awayWords = []string{
		"connection refused", "starting up", "shutting down", "not yet accepting", "recovery mode", "reset by peer", "EOF",
		"crash of another server process", "Server shutdown", "has been closed", "deadline exceeded", "no connection to the database",
	}
)

// failedUnexplained reports whether the call ended with an error that is not one of Do's,
// nor a deadlock, nor of a connection that was cut or a database that was dead: meanwhile,
// or when the connection was idle. Nor is it of a worker that was paused for longer than it
// waits for the database.
func (h *history) failedUnexplained(c *call) bool {
	says := func(s string) bool { return strings.Contains(c.result, s) }
	met := func(kinds ...faultKind) bool {
		return slices.ContainsFunc(h.faults, func(f fault) bool {
			return slices.Contains(kinds, f.Kind) && f.From <= c.returned && c.called <= f.To+int64(maxIdle+ending)
		})
	}
	switch {
	case !strings.HasPrefix(c.result, failed), slices.ContainsFunc(deadlockWords, says):
		return false
	case says("instructed the server to rollback") && (c.grant == nil || len(c.alarms()) > 0):
		return false // another member of a group wrote the row first, and this one had no lock, or told that it had lost it
	case slices.ContainsFunc(cutWords, says) && (c.lost != "" || met(cut, databaseKilled)):
		return false
	case h.explainedByBed(c):
		return false
	case says("deadline exceeded") && slices.ContainsFunc(h.faults, func(f fault) bool {
		return f.Kind == pause && f.Subject == c.worker && f.From <= c.returned && c.called <= f.To
	}):
		return false // it stood still while it asked the database
	}
	return !slices.ContainsFunc(awayWords, says) || !met(databaseKilled)
}

// TestConflictBeforeItsBegin has a call end with a conflict whose begin was noted after the
// end of the only other one.
func TestConflictBeforeItsBegin(t *testing.T) {
	for _, tt := range []struct {
		name  string
		ended int64 // the other one, which was granted its lock at 10
		says  string
	}{
		{"it ended when the lock was granted to another already", 25, ""},
		{"it ended before that", 17, "a conflict with nobody"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := conflicted(story("a.0", "A", 20, 30, 32, 34, "freed"))
			for i := range lines {
				if lines[i].At == begun {
					lines[i].T = 28
				}
			}
			other := story("b.0", "B", 10, 12, tt.ended, tt.ended+1, "gone")
			h, rep := read(recordsOf(map[string][]line{"a": lines, "b": other}), nil), &report{}
			for _, c := range h.calls {
				if c.name == "a.0" {
					checkCall(rep, h, c, h.overlaps())
				}
			}
			said := strings.Join(rep.failed, "\n")
			if met := !strings.Contains(said, "a conflict with nobody"); met != (tt.says == "") {
				t.Errorf("said %q, want %q", said, tt.says)
			}
		})
	}
}
