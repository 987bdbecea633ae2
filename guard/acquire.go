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
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/notify"
)

// errReturned is returned by a transaction of a Call that has no lock, if locks are granted again.
var errReturned = errors.New("guard: locks are granted again, the lock is to be acquired")

// acquire takes the lock on each key, or, where the policy allows it, a place in the local
// queue, and returns a refusal in Do's words. If again is true, an outage has ended by the time
// it has all: the set is to be released and acquired anew, as a lock can't be acquired out of
// order.
func (s *keySet) acquire(ctx context.Context) (again bool, err error) {
	waited := ctx
	if s.plan.wait > 0 {
		var cancel context.CancelFunc
		waited, cancel = context.WithDeadline(ctx, s.plan.until)
		defer cancel()
	}
	for i := range s.holds {
		if err := s.acquireNext(ctx, waited, i); err != nil {
			return false, err
		}
		if i > 0 {
			fail.Point("guard/second-key")
		}
	}
	return s.enlist(ctx)
}

// acquireNext stops waiting for a key when the lock on one before it is lost.
func (s *keySet) acquireNext(ctx, waited context.Context, i int) error {
	if i > 0 {
		var cancel context.CancelCauseFunc
		waited, cancel = s.within(waited)
		defer cancel(nil)
	}
	for {
		if again, err := s.get(ctx, waited, &s.holds[i]); !again {
			return err
		}
	}
}

// get makes one attempt to acquire a key, until waited ends, at which the wait for the key
// does. If again is true, an outage has begun or ended meanwhile, and what to do is to
// be decided anew.
func (s *keySet) get(ctx, waited context.Context, h *hold) (again bool, err error) {
	l := s.layer
	past := l.outages.past.Load()
	if s.plan.policy == DBOnly {
		if o := l.outages.on(h.key); o != nil { // it would only be waited for
			return s.goWithout(ctx, waited, h, o.place, past, o.cause)
		}
	}
	begun, hurried := time.Now(), s.hurried(ctx, waited)
	lease, outage, err := s.ask(ctx, waited, h)
	if err == nil {
		h.got(lease)
		return false, nil
	}
	if lapse := s.alive(); lapse != nil { // which has ended the wait, not the engine
		return false, lapse
	}
	if errors.Is(err, errNoLock) && s.outer.returned() { // or it would be taken for another outage
		return false, errReturned
	}
	if !hurried && s.hurried(ctx, waited) && unheard(err, time.Since(begun)) {
		return true, nil
	}
	refusal := refusal(ctx, err)
	unavailable := errors.Is(refusal, ErrUnavailable)
	switch {
	case s.plan.policy == FailClosed:
		mistaken := errors.Is(err, errNoLock) // of the program
		if unavailable && !mistaken || unanswered(ctx, err, time.Since(begun)) {
			l.refusals.count(s.ctx, h.key, err)
		}
	case outage && (unavailable || errors.Is(refusal, ErrBusy)): // perhaps of this key's node
		return true, nil
	case unavailable:
		return s.goWithout(ctx, waited, h, locate(l.outages.engine, h.key), past, notRunError(err))
	}
	return false, refusal
}

func (h *hold) got(lease *lock.Lease) { h.lease, h.ctx = lease, lease.Context() }

// ask asks the Locker for the lock. outage reports whether an outage that the key falls
// under began meanwhile, which ends the wait under DBOnly.
func (s *keySet) ask(ctx, waited context.Context, h *hold) (lease *lock.Lease, outage bool, err error) {
	l := s.layer
	acquire, asked := l.locker.Acquire, waited
	hurried := s.hurried(ctx, waited)
	if hurried {
		acquire, asked = l.locker.TryAcquire, ctx
	}
	cancel := func() {}
	switch {
	case hurried && (s.plan.policy == DBOnly || s.plan.wait > 0):
		asked, cancel = context.WithTimeout(asked, hesitation)
	case s.plan.policy == DBOnly:
		asked, cancel = l.outages.until(asked, h.key)
	}
	defer cancel()
	var opts []lock.AcquireOption
	if s.mark(h) > 0 {
		opts = append(opts, lock.UnlessMarked())
	}
	h.nested = l.locker.Holds(ctx, h.key)
	lease, err = acquire(asked, h.key, opts...)
	if err == nil && lease.Grant().Owner == "" {
		_ = lease.Release(ctx)
		err = errNoLock
	}
	return lease, errors.Is(context.Cause(asked), errBegun), err
}

// hurried reports whether the caller does not wait for the key, or no longer.
func (s *keySet) hurried(ctx, waited context.Context) bool {
	return s.plan.wait <= 0 || ended(waited) && !ended(ctx)
}

// unheard reports whether the engine had too little time to answer, because the wait for the
// key was short. Wait bounds the wait for a key, not the time that an engine has: the caller
// goes on as one that does not wait.
func unheard(err error, took time.Duration) bool {
	asked := errors.Is(err, lockengine.ErrNoAnswer) || errors.Is(err, lockengine.ErrNotSent) || errors.Is(err, lockengine.ErrRefused)
	return !errors.Is(err, lock.ErrHeld) && errors.Is(err, context.DeadlineExceeded) && (took < hesitation || !asked)
}

// unanswered reports whether the caller's deadline passed while Redis did not answer,
// which took longer than it may. Callers with short deadlines would never tell of
// an outage otherwise.
func unanswered(ctx context.Context, err error, took time.Duration) bool {
	late := ended(ctx) && !errors.Is(ctx.Err(), context.Canceled)
	return late && errors.Is(err, lockengine.ErrNoAnswer) && took >= hesitation
}

// errNoLock: ctx carries a lease that is no more than a place in the local queue.
var errNoLock = errors.New("the context's lease is not of a lock")

// refusal is the lock's error in Do's words. ctx is the caller's.
func refusal(ctx context.Context, err error) error {
	var held *lockengine.HeldError
	switch {
	case errors.As(err, &held) && ended(ctx):
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case held != nil: // our own limit ended the wait, not the caller
		return fmt.Errorf("%w: %w", ErrBusy, held)
	case errors.Is(err, lockengine.ErrMarked):
		return fmt.Errorf("%w: %w", ErrDuplicate, err)
	case errors.Is(err, lock.ErrClosed):
		return fmt.Errorf("%w: %w", ErrClosed, err)
	case errors.Is(err, lock.ErrInvalidKey), errors.Is(err, lockengine.ErrUnusable), ended(ctx):
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, notRunError(err))
}

// ended reports whether ctx has ended, by the clock: the lock, which looks at it, may
// be the first to notice.
func ended(ctx context.Context) bool { return wait.Err(ctx) != nil }

// goWithout gets a place in the local queue, in an outage that may begin at the node that did not
// serve the key: when the caller's turn comes, the key may be at another one. If an outage
// has ended since the lock could not be asked, when so many were past, and none is open,
// it gets the lock after all: again is true. waited ends when the wait for the key does.
func (s *keySet) goWithout(ctx, waited context.Context, h *hold, at lockengine.Place, past int64, cause error) (again bool, err error) {
	l := s.layer
	acquire, within := l.locker.Acquire, waited
	if s.hurried(ctx, waited) {
		acquire, within = l.locker.TryAcquire, ctx
	}
	lease, err := acquire(within, h.key, lock.Local())
	if err != nil {
		return false, refusal(ctx, err)
	}
	h.got(lease)
	if lease.Grant().Owner != "" { // a real one was handed over
		return false, nil
	}
	o, opened := l.outages.open(h.key, at, past, cause)
	if o == nil {
		_ = lease.Release(ctx)
		h.lease, h.ctx = nil, nil
		return true, nil
	}
	h.without, h.outage = cause, o
	if opened {
		l.outages.begin(s.ctx, o)
	}
	return false, nil
}

// away returns the outages that the call is without a lock for.
func (s *keySet) away() (outages []*outage) {
	for i := range s.holds {
		if o := s.holds[i].outage; o != nil && !slices.Contains(outages, o) {
			outages = append(outages, o)
		}
	}
	return outages
}

// enlist makes a call that is without a lock one of those who may run so, and counts it
// in its outages. again is true if one of these is over.
func (s *keySet) enlist(ctx context.Context) (again bool, err error) {
	outages := s.away()
	if len(outages) == 0 {
		return false, nil
	}
	l := s.layer
	if s.uncounted {
		return !l.outages.last(outages), nil
	}
	if err := l.outages.admit(ctx, s.ttl()/2); err != nil {
		return false, fmt.Errorf("%w: %w", err, s.without())
	}
	if !l.outages.join(outages) {
		l.outages.readmit()
		return true, nil
	}
	s.outages = outages
	l.metrics.without.Inc()
	return false, nil
}

// leave counts a call that is without a lock as one that has ended so.
func (s *keySet) leave(o notify.Outcome) {
	for _, out := range s.outages {
		switch o {
		case notify.OutcomeCommitted:
			out.committed.Add(1)
		case notify.OutcomeUnknown:
			out.unknown.Add(1)
		}
		out.running.Add(-1)
	}
	if s.outages != nil {
		s.layer.outages.readmit()
	}
}
