package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock"
)

// acquire takes the lock, or, where the policy allows it, a place in the local
// queue, and puts a refusal into Do's words.
func (c *call) acquire(ctx context.Context) error {
	waited := ctx
	if c.wait > 0 {
		var cancel context.CancelFunc
		waited, cancel = context.WithTimeout(ctx, c.wait)
		defer cancel()
	}
	for {
		if again, err := c.get(ctx, waited); !again {
			return err
		}
	}
}

// get makes one attempt to acquire, until waited ends, at which the wait for the key
// does. If again is true, an outage has begun or ended meanwhile, and what to do is to
// be decided anew.
func (c *call) get(ctx, waited context.Context) (again bool, err error) {
	g := c.guard
	past := g.outages.past.Load()
	if o := g.outages.on(c.key); o != nil { // it would only be waited for
		return c.goWithout(ctx, waited, past, o.cause)
	}
	begun := time.Now()
	lease, outage, err := c.ask(ctx, waited)
	if err == nil {
		c.lease = lease
		return false, nil
	}
	refusal := c.refusal(ctx, err)
	unavailable := errors.Is(refusal, ErrUnavailable)
	switch {
	case g.cfg.OnUnavailable == Refuse:
		mistaken := errors.Is(err, errNoLock) // of the program
		if unavailable && !mistaken || unanswered(ctx, err, time.Since(begun)) {
			g.refusals.count(c.ctx, c.key, err)
		}
	case outage && (unavailable || errors.Is(refusal, ErrBusy)): // perhaps of this key's node
		return true, nil
	case unavailable:
		return c.goWithout(ctx, waited, past, notRunError(err))
	}
	return false, refusal
}

// ask asks the Locker for the lock. outage reports whether an outage that key falls
// under began meanwhile, which ends the wait under DBOnly.
func (c *call) ask(ctx, waited context.Context) (lease *lock.Lease, outage bool, err error) {
	g := c.guard
	acquire, asked := g.locker.Acquire, waited
	hurried := c.hurried(ctx, waited)
	if hurried {
		acquire, asked = g.locker.TryAcquire, ctx
	}
	if g.cfg.OnUnavailable == DBOnly {
		var cancel context.CancelFunc
		if hurried {
			asked, cancel = context.WithTimeout(asked, hesitation)
		} else {
			asked, cancel = g.outages.until(asked, c.key)
		}
		defer cancel()
	}
	var opts []lock.AcquireOption
	if c.remember > 0 {
		opts = append(opts, lock.UnlessMarked())
	}
	lease, err = acquire(asked, c.key, opts...)
	if err == nil && lease.Grant().Owner == "" {
		_ = lease.Release(ctx)
		err = errNoLock
	}
	return lease, errors.Is(context.Cause(asked), errBegun), err
}

// hurried reports whether the caller does not wait for the key, or no longer.
func (c *call) hurried(ctx, waited context.Context) bool {
	return c.wait <= 0 || ended(waited) && !ended(ctx)
}

// unanswered reports whether the caller's deadline passed while Redis did not answer,
// which took longer than it may. Callers with short deadlines would never tell of
// an outage otherwise.
func unanswered(ctx context.Context, err error, took time.Duration) bool {
	late := ended(ctx) && !errors.Is(ctx.Err(), context.Canceled)
	return late && errors.Is(err, lock.ErrNoAnswer) && took >= hesitation
}

// errNoLock: ctx carries a lease that is no more than a place in the local queue.
var errNoLock = errors.New("the context's lease is not of a lock")

// refusal is the lock's error in Do's words. ctx is the caller's.
func (c *call) refusal(ctx context.Context, err error) error {
	var held *lock.HeldError
	switch {
	case errors.As(err, &held) && ended(ctx):
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case held != nil: // our own limit ended the wait, not the caller
		return fmt.Errorf("%w: %w", ErrBusy, held)
	case errors.Is(err, lock.ErrMarked):
		return fmt.Errorf("%w: %w", ErrDuplicate, err)
	case errors.Is(err, lock.ErrClosed):
		return fmt.Errorf("%w: %w", ErrClosed, err)
	case errors.Is(err, lock.ErrInvalidKey), errors.Is(err, lock.ErrUnusable), ended(ctx):
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, notRunError(err))
}

// ended reports whether ctx has ended, by the clock: the lock, which looks at it, may
// be the first to notice.
func ended(ctx context.Context) bool { return wait.Err(ctx) != nil }

// goWithout gets a place in the local queue and one among those who may run
// without the lock, in an outage that may begin here. If one has ended since the
// lock could not be asked, when so many were past, and none is open, it gets the
// lock after all: again is true. waited ends when the wait for the key does.
func (c *call) goWithout(ctx, waited context.Context, past int64, cause error) (again bool, err error) {
	g := c.guard
	acquire, within := g.locker.Acquire, waited
	if c.hurried(ctx, waited) {
		acquire, within = g.locker.TryAcquire, ctx
	}
	lease, err := acquire(within, c.key, lock.Local())
	if err != nil {
		return false, c.refusal(ctx, err)
	}
	c.lease = lease
	if lease.Grant().Owner != "" { // a real one was handed over
		return false, nil
	}
	if !g.outages.overSince(c.key, past) {
		if err := g.outages.admit(ctx, lease.Grant().TTL/2); err != nil {
			return false, fmt.Errorf("%w: %w", err, cause)
		}
		if c.join(past, cause) {
			return false, nil
		}
		g.outages.dismiss(nil)
	}
	_ = lease.Release(ctx)
	c.lease = nil
	return true, nil
}

// join makes the call, which has been admitted, one that runs without the lock. It
// returns false if the outage is over.
func (c *call) join(past int64, cause error) bool {
	o, opened := c.guard.outages.join(c.key, past, cause)
	if o == nil {
		return false
	}
	c.without, c.outage = cause, o
	c.guard.metrics.without.Inc()
	if opened {
		c.guard.outages.begin(c.ctx, o)
	}
	return true
}
