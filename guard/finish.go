package guard

import (
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/parallel"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// finish releases the locks after the last attempt and reports what went wrong
// with them: one event at most.
func (c *call) finish(e ending) error {
	lapsed, lapse := c.lapse()
	if e.outcome == notify.OutcomeUnknown {
		ev := c.unknownEvent()
		c.abandon()
		fail.Point("guard/abandoned")
		c.publish(ev)
		return e.err
	}

	h, gone := c.release(e.done)
	switch f := e.finding; {
	case f != nil && e.outcome != notify.OutcomeCommitted:
		if gone == nil { // or the release was not answered
			h, gone = f.foundGone()
		}
		f = f.released()
		if gone != nil && !f.verdict.failure() { // after a repeat: another may have held it, too
			h.report(notify.OutcomeRefused, gone)
		}
		return c.refused(f, e.err)
	case e.outcome == notify.OutcomeCommitted:
		if gone != nil {
			h.report(notify.OutcomeCommitted, gone)
		}
		return nil
	case errors.Is(lapse, lock.ErrLost):
		if !errors.Is(lapse, lock.ErrClosed) { // the program has ended it itself
			lapsed.report(notify.OutcomeRolledBack, lapse)
		}
		if e.err == nil || errors.Is(e.err, lock.ErrLost) {
			return lapse
		}
		return fmt.Errorf("%w; the operation ended with: %w", lapse, e.err)
	case gone != nil && !errors.Is(gone, lock.ErrClosed):
		h.report(notify.OutcomeRolledBack, gone)
	}
	return e.err
}

// report publishes that the lock was lost.
func (h *hold) report(o notify.Outcome, gone error) {
	h.call.publish(h.lostEvent(o, gone))
}

// abandon leaves the locks to their ttl.
func (c *call) abandon() {
	for i := range c.holds {
		c.holds[i].settled = true
		c.holds[i].lease.Abandon()
	}
}

// refused is the end of an operation with a conflict on a protected row.
func (c *call) refused(f *finding, opErr error) error {
	if !f.verdict.failure() {
		return c.repeated(f, opErr)
	}
	ev := f.event()
	c.publish(ev)
	return &InterceptionError{Event: ev, Conflict: f.conflict}
}

// repeated is the end of an operation with a conflict that says nothing about
// the lock. What op returns decides: its own words stand, and it may have
// swallowed one conflict and return another.
func (c *call) repeated(f *finding, opErr error) error {
	conflict, v := f.endedWith(opErr)
	if c.claims(conflict) {
		return c.claiming.repeated(conflict)
	}
	repeat := ErrDuplicate
	switch v {
	case duplicate:
	case stale:
		repeat = ErrStale
	default:
		if conflict != nil && conflict.Evidence.Changed {
			c.guard.metrics.unjudged.Inc()
		}
		return opErr
	}
	if f.about(conflict).unverified() {
		c.guard.metrics.unverified.Inc()
		return fmt.Errorf("%w (not verified: the lock could not be asked): %w", repeat, conflict)
	}
	return fmt.Errorf("%w: %w", repeat, conflict)
}

// release gives the locks back, all at once. It returns an error that matches ErrLost,
// and the hold, if a lock was found gone. done tells that the request which the key names
// has taken effect, now or before.
func (c *call) release(done bool) (*hold, error) {
	parallel.Do(len(c.holds), func(i int) { c.holds[i].release(done) })
	return c.first(func(h *hold) error { return h.gone })
}

// release gives the lock back, if there is one and nobody has given it back. A release
// that fails changes nothing about what was done: the Locker goes on trying.
func (h *hold) release(done bool) {
	if h.lease == nil || h.settled {
		return
	}
	h.settled = true
	c := h.call
	var err error
	if keep := h.remembers(); done && keep > 0 && h.without == nil {
		err = h.lease.ReleaseMarked(c.ctx, keep)
	} else {
		err = h.lease.Release(c.ctx)
	}
	switch {
	case err == nil:
	case errors.Is(err, lock.ErrClosed) && time.Now().Before(h.lease.Grant().Deadline): // nobody has it yet
	case errors.Is(err, lock.ErrLost):
		h.gone = err
	default:
		c.guard.cfg.Logger.Warn("release lock", "key", h.key, "error", err)
	}
}
