package guard

import (
	"errors"
	"fmt"

	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// finish releases the locks after the last attempt and reports what went wrong
// with them: one event at most.
func (r *run) finish(e ending) error {
	r.finished, r.conclusion.outcome = true, e.outcome
	lapse := r.keys.lapse()
	if e.outcome == notify.OutcomeUnknown {
		r.conclusion.failed = true
		ev := r.series.explain(r.unknownEvent())
		r.keys.settle(e.outcome, false)
		fail.Point("guard/abandoned")
		r.publish(ev)
		return e.err
	}

	losses := r.keys.settle(e.outcome, r.done(e))
	gone := firstLoss(losses)
	switch f := e.finding; {
	case f != nil && e.outcome != notify.OutcomeCommitted:
		if gone == nil { // or the release was not answered
			gone = f.foundGone()
		}
		f = f.released(losses)
		if gone != nil && !f.verdict.failure() { // after a repeat: another may have held it, too
			r.report(*gone, notify.OutcomeRefused)
		}
		return r.refused(f, e.err)
	case e.outcome == notify.OutcomeCommitted:
		if gone != nil {
			r.report(*gone, notify.OutcomeCommitted)
		}
		return nil
	case lapse != nil && errors.Is(lapse.err, lock.ErrLost):
		r.conclusion.failed = true
		first := firstLoss(append([]loss{*lapse}, losses...))
		if !errors.Is(first.err, lock.ErrClosed) { // the program has ended it itself
			r.report(*first, notify.OutcomeRolledBack)
		}
		if e.err == nil || errors.Is(e.err, lock.ErrLost) {
			return lapse.err
		}
		return fmt.Errorf("%w; the operation ended with: %w", lapse.err, e.err)
	case gone != nil && !errors.Is(gone.err, lock.ErrClosed):
		r.report(*gone, notify.OutcomeRolledBack)
	}
	return e.err
}

// done reports whether what the key names has taken effect, now or before.
func (r *run) done(e ending) bool {
	switch {
	case e.outcome == notify.OutcomeCommitted:
		return true
	case e.finding == nil:
		return false
	}
	return e.finding.doneBefore(e.err, r.request != nil) && !r.request.suspended()
}

// report publishes that a lock was lost, and what an earlier attempt met under it. The lock of a Call is
// the Call's to report.
func (r *run) report(l loss, o notify.Outcome) {
	if r.outer.has(r.keys.find(l.key)) {
		return
	}
	r.publish(r.series.explain(r.lostEvent(l, o)))
}

// refused is the end of an operation with a conflict on a protected row.
func (r *run) refused(f *finding, opErr error) error {
	if !f.verdict.failure() {
		return r.repeated(f, opErr)
	}
	r.conclusion.failed = true
	ev := r.overlapEvent(f)
	r.publish(ev)
	return &InterceptionError{Event: ev, Conflict: f.conflict}
}

// repeated is the end of an operation with a conflict that says nothing about
// the lock. What op returns decides: its own words stand, and it may have
// swallowed one conflict and return another.
func (r *run) repeated(f *finding, opErr error) error {
	conflict, v := f.endedWith(opErr)
	if r.request != nil && onClaim(conflict) {
		return r.request.repeated(conflict)
	}
	repeat := ErrStale
	switch {
	case v == duplicate && (r.request != nil || r.reserves && !onClaim(conflict)): // of another request, or of none
		repeat = ErrExists
	case v == duplicate:
		repeat = ErrDuplicate
	case v == overtaken && !brought(opErr):
		return fmt.Errorf("%w: another caller has changed the row first: %w", ErrBusy, conflict)
	case v == overtaken:
		return fmt.Errorf("%w: %w", ErrStale, conflict)
	case v != stale:
		if conflict != nil && conflict.Evidence.Changed {
			r.reporter.metrics.unjudged.Inc()
		}
		return opErr
	}
	if f.about(conflict).unverified() {
		r.reporter.metrics.unverified.Inc()
		return fmt.Errorf("%w (not verified: the lock could not be asked): %w", repeat, conflict)
	}
	return fmt.Errorf("%w: %w", repeat, conflict)
}
