package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// acquire takes the lock on each key, or, where the policy allows it, a place in the
// local queue, and puts a refusal into Do's words. If an outage has ended by the time it
// has all, it begins anew, as a lock can't be acquired out of order.
func (c *call) acquire(ctx context.Context) error {
	waited := ctx
	if c.wait > 0 {
		var cancel context.CancelFunc
		waited, cancel = context.WithDeadline(ctx, c.until)
		defer cancel()
	}
	for {
		err := c.acquireAll(ctx, waited)
		if err == nil {
			var again bool
			if again, err = c.enlist(ctx); !again && err == nil {
				return nil
			}
		}
		if lapse := c.alive(); lapse != nil {
			err = lapse
		}
		if err != nil {
			return c.finish(ending{err: err, outcome: notify.OutcomeRolledBack})
		}
		if h, gone := c.release(false); gone != nil {
			h.report(notify.OutcomeRolledBack, gone)
			return gone
		}
		for i := range c.holds {
			c.holds[i] = hold{call: c, key: c.holds[i].key, rows: c.holds[i].rows}
		}
	}
}

func (c *call) acquireAll(ctx, waited context.Context) error {
	for i := range c.holds {
		if err := c.holds[i].acquire(ctx, waited); err != nil {
			return err
		}
		if i > 0 {
			fail.Point("guard/second-key")
		}
	}
	return nil
}

// acquire stops waiting for the key when the lock on one before it is lost.
func (h *hold) acquire(ctx, waited context.Context) error {
	if h != &h.call.holds[0] {
		var cancel context.CancelFunc
		waited, cancel = h.call.within(waited)
		defer cancel()
	}
	for {
		if again, err := h.get(ctx, waited); !again {
			return err
		}
	}
}

// get makes one attempt to acquire, until waited ends, at which the wait for the key
// does. If again is true, an outage has begun or ended meanwhile, and what to do is to
// be decided anew.
func (h *hold) get(ctx, waited context.Context) (again bool, err error) {
	g := h.call.guard
	past := g.outages.past.Load()
	if h.call.policy == DBOnly {
		if o := g.outages.on(h.key); o != nil { // it would only be waited for
			return h.goWithout(ctx, waited, past, o.cause)
		}
	}
	begun := time.Now()
	lease, outage, err := h.ask(ctx, waited)
	if err == nil {
		h.got(lease)
		return false, nil
	}
	if lapse := h.call.alive(); lapse != nil { // which has ended the wait, not the engine
		return false, lapse
	}
	refusal := refusal(ctx, err)
	unavailable := errors.Is(refusal, ErrUnavailable)
	switch {
	case h.call.policy == FailClosed:
		mistaken := errors.Is(err, errNoLock) // of the program
		if unavailable && !mistaken || unanswered(ctx, err, time.Since(begun)) {
			g.refusals.count(h.call.ctx, h.key, err)
		}
	case outage && (unavailable || errors.Is(refusal, ErrBusy)): // perhaps of this key's node
		return true, nil
	case unavailable:
		return h.goWithout(ctx, waited, past, notRunError(err))
	}
	return false, refusal
}

func (h *hold) got(lease *lock.Lease) { h.lease, h.ctx = lease, lease.Context() }

// ask asks the Locker for the lock. outage reports whether an outage that key falls
// under began meanwhile, which ends the wait under DBOnly.
func (h *hold) ask(ctx, waited context.Context) (lease *lock.Lease, outage bool, err error) {
	g := h.call.guard
	acquire, asked := g.locker.Acquire, waited
	hurried := h.call.hurried(ctx, waited)
	if hurried {
		acquire, asked = g.locker.TryAcquire, ctx
	}
	if h.call.policy == DBOnly {
		var cancel context.CancelFunc
		if hurried {
			asked, cancel = context.WithTimeout(asked, hesitation)
		} else {
			asked, cancel = g.outages.until(asked, h.key)
		}
		defer cancel()
	}
	var opts []lock.AcquireOption
	if h.remembers() > 0 {
		opts = append(opts, lock.UnlessMarked())
	}
	lease, err = acquire(asked, h.key, opts...)
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
func refusal(ctx context.Context, err error) error {
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

// goWithout gets a place in the local queue, in an outage that may begin here. If one
// has ended since the lock could not be asked, when so many were past, and none is open,
// it gets the lock after all: again is true. waited ends when the wait for the key does.
func (h *hold) goWithout(ctx, waited context.Context, past int64, cause error) (again bool, err error) {
	g := h.call.guard
	acquire, within := g.locker.Acquire, waited
	if h.call.hurried(ctx, waited) {
		acquire, within = g.locker.TryAcquire, ctx
	}
	lease, err := acquire(within, h.key, lock.Local())
	if err != nil {
		return false, refusal(ctx, err)
	}
	h.got(lease)
	if lease.Grant().Owner != "" { // a real one was handed over
		return false, nil
	}
	o, opened := g.outages.open(h.key, past, cause)
	if o == nil {
		_ = lease.Release(ctx)
		h.lease, h.ctx = nil, nil
		return true, nil
	}
	h.without, h.outage = cause, o
	if opened {
		g.outages.begin(h.call.ctx, o)
	}
	return false, nil
}

// enlist makes a call that is without a lock one of those who may run so, and counts it
// in its outages. again is true if one of these is over.
func (c *call) enlist(ctx context.Context) (again bool, err error) {
	var outages []*outage
	for i := range c.holds {
		if o := c.holds[i].outage; o != nil && !slices.Contains(outages, o) {
			outages = append(outages, o)
		}
	}
	if len(outages) == 0 {
		return false, nil
	}
	g := c.guard
	if err := g.outages.admit(ctx, c.ttl()/2); err != nil {
		return false, fmt.Errorf("%w: %w", err, c.without())
	}
	if !g.outages.join(outages) {
		g.outages.readmit()
		return true, nil
	}
	c.outages = outages
	g.metrics.without.Inc()
	return false, nil
}
