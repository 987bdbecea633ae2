package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// How long the head of a queue sleeps before its next attempt: without a
// subscription, and with one, whose messages may be missed.
const (
	pollFrom, pollTo   = 10 * time.Millisecond, 50 * time.Millisecond
	floorFrom, floorTo = 500 * time.Millisecond, time.Second

	// maxBackoff is how often the sleep is doubled when no answer comes, as each
	// such request may have left an orphan, or when the engine refuses, as it is in
	// trouble.
	maxBackoff = 4

	// yieldTime is how long it leaves the key to other processes after this one
	// has released it, if no notification comes.
	yieldTime = 5 * time.Millisecond
)

// wait makes attempts until it gets the lock, ctx ends, or the engine fails for good.
// The caller is the head of the key's queue, since t.
func (l *Locker) wait(ctx context.Context, c request, t admission) (*Lease, error) {
	key := c.key
	a := l.queues.subscription(key)
	last := &HeldError{Key: key, Holder: Holder{Place: Place{Slot: -1}}}
	if t.waited { // the admission may have met the end of the wait
		if end := l.waitEnd(ctx); end != nil {
			return nil, last.endedBy(end)
		}
	}
	if t.yield && a != nil {
		if end := l.sleep(ctx, a, yieldTime); end != nil {
			return nil, last.endedBy(end)
		}
	}
	heard := false     // the engine has answered
	backoff := 0       // how often the sleep is doubled
	reached := l.now() // when it last did
	for {
		lease, err := l.attempt(ctx, c)
		if err == nil || errors.Is(err, ErrMarked) {
			return lease, err
		}
		held, answered := errors.AsType[*HeldError](err)
		if answered {
			last, heard, reached = held, true, l.now()
		}
		if errors.Is(err, ErrNoAnswer) || errors.Is(err, ErrRefused) {
			backoff = min(backoff+1, maxBackoff)
		} else {
			backoff = 0
		}
		if end := endOf(ctx); end != nil && heard {
			return nil, last.endedBy(end)
		}
		switch {
		case answered && a == nil:
			if a = l.subscribe(ctx, key); a != nil {
				continue // it may have become free before we subscribed
			}
		case !answered && !l.mayRecover(ctx, err, reached):
			return nil, err
		}
		switch end := l.sleep(ctx, a, pollDelay(a, answered, last.Holder.TTL)<<backoff); {
		case end != nil && heard:
			return nil, last.endedBy(end)
		case end != nil:
			return nil, fmt.Errorf("%w: %w", end, err)
		}
	}
}

// waitEnd returns what has ended a wait: ctx's error, or ErrClosed.
func (l *Locker) waitEnd(ctx context.Context) error {
	select {
	case <-l.closing:
		return ErrClosed
	default:
		return endOf(ctx)
	}
}

// mayRecover reports whether an engine's failure may pass by itself soon.
func (l *Locker) mayRecover(ctx context.Context, err error, reached int64) bool {
	return (errors.Is(err, ErrNotSent) || errors.Is(err, ErrRefused) || errors.Is(err, ErrNoAnswer)) &&
		!errors.Is(err, ErrDenied) && endOf(ctx) == nil && l.now()-reached < int64(l.cfg.TTL)
}

// pollDelay is how long to sleep before the next attempt. A holder that has died is
// noticed when its lock expires; an engine that is out of reach, soon after it is
// back.
func pollDelay(a *subscription, answered bool, ttl time.Duration) time.Duration {
	if a == nil || !answered {
		return pollFrom + rand.N(pollTo-pollFrom)
	}
	d := floorFrom + rand.N(floorTo-floorFrom)
	if ttl > 0 && ttl < d {
		d = min(d, ttl+rand.N(5*time.Millisecond))
	}
	return d
}

// sleep sleeps for d, or until a notifies. It returns ctx's error or ErrClosed if
// these come first.
func (l *Locker) sleep(ctx context.Context, a *subscription, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	var notified <-chan struct{}
	if a != nil {
		notified = a.notified
	}
	select {
	case <-notified:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.closing:
		return ErrClosed
	}
	return nil
}

// subscribe has the engine notify the head when key may have become free. It returns
// nil if the engine can't, now or ever.
func (l *Locker) subscribe(ctx context.Context, key string) *subscription {
	waker, ok := l.engine.(Waker)
	if !ok {
		return nil
	}
	a := &subscription{notified: make(chan struct{}, 1)}
	ctx, cancel := within(ctx, l.cfg.TTL)
	defer cancel()
	stop, err := waker.Watch(ctx, key, a.notify)
	if err != nil {
		l.cfg.Logger.Debug("listen for the release of a lock", "key", key, "error", err)
		return nil
	}
	a.stop = stop
	l.queues.setSubscription(key, a)
	return a
}
