package guard

import (
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// finish releases the lock after the last attempt and reports what went wrong
// with it: one event at most.
func (c *call) finish(e ending) error {
	lapse := c.lease.Err()
	if e.outcome == notify.OutcomeUnknown {
		ev := c.unknownEvent(lapse)
		c.lease.Abandon()
		fail.Point("guard/abandoned")
		c.settled = true
		c.publish(ev)
		return e.err
	}

	gone := c.release(e.done)
	switch f := e.finding; {
	case f != nil && e.outcome != notify.OutcomeCommitted:
		if gone == nil && f.gone() { // the release was not answered
			gone = lock.ErrLost
		}
		if gone != nil {
			f.released()
		}
		if gone != nil && !f.verdict.failure() { // after a repeat: another may have held it, too
			c.publish(c.lostEvent(notify.OutcomeRefused, gone))
		}
		return c.refused(f, e.err)
	case e.outcome == notify.OutcomeCommitted:
		if gone != nil {
			c.publish(c.lostEvent(notify.OutcomeCommitted, gone))
		}
		return nil
	case errors.Is(lapse, lock.ErrLost):
		if !errors.Is(lapse, lock.ErrClosed) { // the program has ended it itself
			c.publish(c.lostEvent(notify.OutcomeRolledBack, lapse))
		}
		if e.err == nil || errors.Is(e.err, lock.ErrLost) {
			return lapse
		}
		return fmt.Errorf("%w; the operation ended with: %w", lapse, e.err)
	case gone != nil && !errors.Is(gone, lock.ErrClosed):
		c.publish(c.lostEvent(notify.OutcomeRolledBack, gone))
	}
	return e.err
}

// refused is the end of an operation with a conflict on a protected row.
func (c *call) refused(f *finding, opErr error) error {
	if !f.verdict.failure() {
		return c.repeated(f, opErr)
	}
	ev := c.conflictEvent(f)
	c.publish(ev)
	return &InterceptionError{Event: ev, Conflict: f.conflict}
}

// repeated is the end of an operation with a conflict that says nothing about
// the lock. What op returns decides: its own words stand, and it may have
// swallowed one conflict and return another.
func (c *call) repeated(f *finding, opErr error) error {
	conflict, v := f.endedWith(opErr)
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
	if f.unverified() {
		c.guard.metrics.unverified.Inc()
		return fmt.Errorf("%w (not verified: the lock could not be asked): %w", repeat, conflict)
	}
	return fmt.Errorf("%w: %w", repeat, conflict)
}

// release gives the lock back. It returns an error that matches ErrLost if the
// lock was found gone. done tells that the request which the key names has taken
// effect, now or before. A release that fails changes nothing about what was
// done: the Locker goes on trying.
func (c *call) release(done bool) (gone error) {
	c.settled = true
	var err error
	if done && c.remember > 0 && c.without == nil {
		err = c.lease.ReleaseMarked(c.ctx, c.remember)
	} else {
		err = c.lease.Release(c.ctx)
	}
	switch {
	case err == nil:
	case errors.Is(err, lock.ErrClosed) && time.Now().Before(c.lease.Grant().Deadline): // nobody has it yet
	case errors.Is(err, lock.ErrLost):
		return err
	default:
		c.guard.cfg.Logger.Warn("release lock", "key", c.key, "error", err)
	}
	return nil
}
