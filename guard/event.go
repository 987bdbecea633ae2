package guard

import (
	"errors"

	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/parallel"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// event begins the report of a failure of the lock.
func (h *hold) event(v notify.Verdict, o notify.Outcome) notify.Event {
	ev := h.call.guard.reporter.event(h.call.ctx, v, o, h.key)
	ev.Keys = h.call.keys()
	ev.Count = max(1, h.call.shared)
	if h.without != nil {
		ev.Place = place(h.outage.place)
		return ev
	}
	grant := h.lease.Grant()
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

// event is the report of a conflict that shows a failure of the lock.
func (f *finding) event() notify.Event {
	ev := f.hold.event(notify.VerdictOverlap, notify.OutcomeRefused)
	if f.verdict == lost {
		ev.Verdict = notify.VerdictLost
	}
	f.describe(&ev)
	return ev
}

// lostEvent is the report of a lock whose loss no conflict has shown.
func (h *hold) lostEvent(o notify.Outcome, gone error) notify.Event {
	ev := h.event(notify.VerdictLost, o)
	ev.Loss = loss(gone)
	if errors.Is(gone, lock.ErrClosed) { // and its time ran out before the COMMIT was answered
		ev.Loss = notify.LossExpired
	}
	return ev
}

// unknownEvent is the report of a commit of unknown outcome, and of the loss of a lock
// if that is known. No release will find it out, for those who had the lock before
// either, so the lock is asked.
func (c *call) unknownEvent() notify.Event {
	lost := make([]notify.Loss, len(c.holds))
	parallel.Do(len(lost), func(i int) { lost[i] = c.holds[i].lost() })
	for i, l := range lost {
		if l != "" {
			ev := c.holds[i].event(notify.VerdictLost, notify.OutcomeUnknown)
			ev.Loss = l
			return ev
		}
	}
	return c.hold(c.key).event(notify.VerdictUnknownCommit, notify.OutcomeUnknown)
}

// lost returns how the lock was lost, as far as the lease knows or the lock answers.
func (h *hold) lost() notify.Loss {
	if l := loss(h.lease.Err()); l != "" {
		return l
	}
	if who, _ := h.holder(); who == notify.HolderNone || who == notify.HolderOther {
		return notify.LossGone
	}
	return ""
}

func (c *call) publish(ev notify.Event) {
	fail.Point("guard/before-event")
	c.guard.reporter.publish(c.ctx, ev)
	fail.Point("guard/event-published")
}
