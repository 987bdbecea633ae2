package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// call is one Do: the lock, and one attempt or several under it.
type call struct {
	options
	guard   *Guard
	key     string
	op      Op
	ctx     context.Context // the caller's, and what the Observer adds
	lease   *lock.Lease
	memory  dbtx.Memory // of all attempts
	without error       // why there is no lock but only a place in the local queue
	outage  *outage     // which it is without for
	tx      *dbtx.Tx    // of the attempt that runs
	tries   int         // attempts that were made again
	brought bool        // the caller gave Update a row with a version, which no attempt changes
	settled bool        // the lease has been given back
}

// callKey asks a context for the call whose operation it belongs to.
type callKey struct{}

// callContext is the context of a call's operation. It carries the lease, too, in
// which another acquire of the key is nested.
type callContext struct {
	context.Context
	call  *call
	lease context.Context
}

func (c callContext) Value(key any) any {
	if key == (callKey{}) {
		return c.call
	}
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.lease.Value(key)
}

func (c *call) do(ctx context.Context) (err error) {
	ctx, end := c.guard.observe(ctx, StepDo, c.key)
	c.ctx = ctx
	err = errPanicked
	defer func() {
		c.guard.metrics.ended(err)
		end(err)
	}()
	defer c.leave()
	if refusal := c.enter(); refusal != nil {
		err = refusal
		return err
	}
	err = c.run()
	return err
}

// enter gets the lock, or what stands for it.
func (c *call) enter() (err error) {
	ctx, end := c.guard.observe(c.ctx, StepLock, c.key)
	begun := time.Now()
	err = errPanicked
	defer func() {
		c.guard.metrics.lockWait.Observe(time.Since(begun).Seconds())
		end(err)
	}()
	err = c.acquire(ctx)
	return err
}

// run makes attempts, all under the same lease.
func (c *call) run() error {
	lease := c.lease.Context()
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(context.Canceled)
	detach := context.AfterFunc(lease, func() { cancel(context.Cause(lease)) })
	defer detach()
	for {
		if e := c.attempt(callContext{ctx, c, lease}); !c.again(e) {
			detach() // or the release would make a goroutine that ends ctx
			cancel(context.Canceled)
			return c.finish(e)
		}
	}
}

// finish releases the lock after the last attempt and reports what went wrong
// with it: one event at most.
func (c *call) finish(e ending) error {
	lapse := c.lease.Err()
	if e.outcome == notify.OutcomeUnknown {
		ev := c.unknownEvent(lapse)
		c.lease.Abandon()
		c.settled = true
		c.publish(ev)
		return e.err
	}

	gone := c.release(e.done)
	switch f := e.finding; {
	case f != nil && e.outcome != notify.OutcomeCommitted:
		if gone != nil && f.unverified() {
			f.relation = notify.HolderNone // now it is known
			f.verdict = f.judge(f.conflict)
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
	ev := c.event(notify.VerdictOverlap, notify.OutcomeRefused)
	if f.verdict == lost {
		ev.Verdict = notify.VerdictLost
	}
	f.describe(&ev)
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

// detached returns a context for what must not end with the caller's.
func (c *call) detached() (context.Context, context.CancelFunc) { return c.guard.detached(c.ctx) }

func (g *Guard) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), g.cfg.EndTimeout)
}
