package guard

import (
	"errors"

	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// event begins the report of a failure of the lock on key.
func (r *run) event(v notify.Verdict, o notify.Outcome, key string) notify.Event {
	ev := r.reporter.event(r.ctx, v, o, key)
	ev.Count = max(1, r.count)
	r.keys.describe(&ev)
	return ev
}

// overlapEvent is the report of a conflict that shows a failure of the lock.
func (r *run) overlapEvent(f *finding) notify.Event {
	ev := r.event(notify.VerdictOverlap, notify.OutcomeRefused, f.key)
	if f.verdict == lost {
		ev.Verdict = notify.VerdictLost
	}
	f.describe(&ev)
	return ev
}

// lostEvent is the report of a lock whose loss no conflict has shown.
func (r *run) lostEvent(l loss, o notify.Outcome) notify.Event {
	ev := r.event(notify.VerdictLost, o, l.key)
	ev.Loss = lossOf(l.err)
	if errors.Is(l.err, lock.ErrClosed) { // and its time ran out before the COMMIT was answered
		ev.Loss = notify.LossExpired
	}
	return ev
}

// unknownEvent is the report of a commit of unknown outcome, and of the loss of a lock
// if that is known. No release will find it out, for those who had the lock before
// either, so the lock is asked.
func (r *run) unknownEvent() notify.Event {
	if key, how := r.keys.missing(); key != "" {
		ev := r.event(notify.VerdictLost, notify.OutcomeUnknown, key)
		ev.Loss = how
		return ev
	}
	return r.event(notify.VerdictUnknownCommit, notify.OutcomeUnknown, r.keys.plan.main)
}

func (r *run) publish(ev notify.Event) {
	fail.Point("guard/before-event")
	r.reporter.publish(r.ctx, ev)
	r.conclusion.events = append(r.conclusion.events, ev.Key)
	fail.Point("guard/event-published")
}
