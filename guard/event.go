package guard

import (
	"errors"

	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// event begins the report of a failure of the call's lock.
func (c *call) event(v notify.Verdict, o notify.Outcome) notify.Event {
	ev := c.guard.reporter.event(c.ctx, v, o, c.key)
	if c.without != nil {
		ev.Place = place(c.outage.place)
		return ev
	}
	grant := c.lease.Grant()
	ev.Place = place(grant.Place)
	ev.Owner = grant.Owner
	ev.Token = grant.Token
	if grant.FirstToken != grant.Token {
		ev.FirstToken = grant.FirstToken
	}
	ev.AcquiredAt = grant.AcquiredAt
	ev.TTL = grant.TTL
	ev.Deadline = grant.Deadline
	return ev
}

// conflictEvent is the report of a conflict that shows a failure of the lock.
func (c *call) conflictEvent(f *finding) notify.Event {
	ev := c.event(notify.VerdictOverlap, notify.OutcomeRefused)
	if f.verdict == lost {
		ev.Verdict = notify.VerdictLost
	}
	f.describe(&ev)
	return ev
}

// lostEvent is the report of a lock whose loss no conflict has shown.
func (c *call) lostEvent(o notify.Outcome, gone error) notify.Event {
	ev := c.event(notify.VerdictLost, o)
	ev.Loss = loss(gone)
	if errors.Is(gone, lock.ErrClosed) { // and its time ran out before the COMMIT was answered
		ev.Loss = notify.LossExpired
	}
	return ev
}

// unknownEvent is the report of a commit of unknown outcome, and of the loss of the
// lock if that is known. No release of this lease will find it out, for those who
// had the lock before either, so the lock is asked.
func (c *call) unknownEvent(lapse error) notify.Event {
	ev := c.event(notify.VerdictUnknownCommit, notify.OutcomeUnknown)
	ev.Loss = loss(lapse)
	if ev.Loss == "" {
		if who, _ := c.holder(); who == notify.HolderNone || who == notify.HolderOther {
			ev.Loss = notify.LossGone
		}
	}
	if ev.Loss != "" {
		ev.Verdict = notify.VerdictLost
	}
	return ev
}

func (c *call) publish(ev notify.Event) {
	fail.Point("guard/before-event")
	c.guard.reporter.publish(c.ctx, ev)
	fail.Point("guard/event-published")
}
