package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock/lockengine"
)

// How long the head of a queue sleeps before its next attempt: without a subscription that
// it heeds, and with one, whose messages may be missed. A waiter makes one attempt for each
// poll and for each notification.
const (
	pollFrom, pollTo   = 10 * time.Millisecond, 50 * time.Millisecond
	floorFrom, floorTo = 500 * time.Millisecond, time.Second

	// maxBackoff is how often the sleep is doubled when no answer comes, as each
	// such request may have left an orphan, or when the engine refuses, as it is in
	// trouble.
	maxBackoff = 4
)

// wait makes attempts until it gets the lock, ctx ends, or the engine fails for good. first is
// the answer to the first one if that was made already, or nil. The caller is the head of the
// key's queue.
func (l *Locker) wait(ctx context.Context, c acquireCall, first *answer) (*Lease, error) {
	sub, earlier := l.queues.inherited(c.key)
	last := &lockengine.HeldError{Key: c.key, Holder: nobody}
	heard := false                   // the engine has answered
	backoff := 0                     // how often the sleep is doubled
	reached := l.inherit(c, earlier) // when it last did
	for {
		lease, err := l.attemptUnlessMade(ctx, c, first)
		first, c.waits = nil, true
		switch {
		case err == nil:
			return lease, nil
		case errors.Is(err, lockengine.ErrMarked):
			l.queues.note(c.key, nil)
			return nil, err
		}
		held, answered := errors.AsType[*lockengine.HeldError](err)
		if answered {
			last, heard, reached = held, true, l.now()
			l.queues.note(c.key, newsOf(held, reached))
		}
		if errors.Is(err, lockengine.ErrNoAnswer) || errors.Is(err, lockengine.ErrRefused) {
			backoff = min(backoff+1, maxBackoff)
		} else {
			backoff = 0
		}
		if end := wait.Err(ctx); end != nil && heard {
			return nil, endedBy(last, end)
		}
		switch {
		case answered && sub == nil:
			if sub = l.subscribe(ctx, c.key); sub != nil {
				continue // it may have become free before we subscribed
			}
		case !answered && !mayRecover(ctx, err):
			return nil, err
		}
		givesUp := !answered && l.now()-reached >= int64(l.cfg.TTL)
		if givesUp || !heard {
			l.queues.note(c.key, newsOf(err, reached))
		}
		if givesUp {
			return nil, err
		}
		heed := sub
		if !answered || held.Partial {
			heed = nil // it may be notified of the release of this attempt's own grant
		}
		switch end := l.sleep(ctx, heed, pollDelay(heed, last.Holder.TTL)<<backoff); {
		case end != nil && heard:
			return nil, endedBy(last, end)
		case end != nil:
			return nil, fmt.Errorf("%w: %w", end, err)
		}
	}
}

// attemptUnlessMade returns the answer to an attempt that was made already, or makes one.
func (l *Locker) attemptUnlessMade(ctx context.Context, c acquireCall, made *answer) (*Lease, error) {
	if made != nil {
		return made.lease, made.err
	}
	return l.attempt(ctx, c)
}

// inherit returns when the engine last answered the callers of c's queue, or c itself was made if that
// was later. So those who have waited behind others for a ttl without an answer make one attempt each.
func (l *Locker) inherit(c acquireCall, earlier *news) (reached int64) {
	if earlier == nil {
		return l.now()
	}
	return max(earlier.reached, c.came)
}

// waitEnd returns the reason why a wait has ended: ctx's error, or ErrClosed.
func (l *Locker) waitEnd(ctx context.Context) error {
	select {
	case <-l.closing:
		return ErrClosed
	default:
		return wait.Err(ctx)
	}
}

// mayRecover reports whether a retry may soon succeed after an engine's failure.
func mayRecover(ctx context.Context, err error) bool {
	return (errors.Is(err, lockengine.ErrNotSent) || errors.Is(err, lockengine.ErrRefused) || errors.Is(err, lockengine.ErrNoAnswer)) &&
		!errors.Is(err, lockengine.ErrDenied) && wait.Err(ctx) == nil
}

// pollDelay returns how long to sleep before the next attempt of a head that heeds sub,
// which may be nil. The lock of a dead holder is found free when it expires, and an
// engine that was out of reach soon after it is back.
func pollDelay(sub *subscription, ttl time.Duration) time.Duration {
	if sub == nil {
		return wait.Between(pollFrom, pollTo)
	}
	d := wait.Between(floorFrom, floorTo)
	if ttl > 0 && ttl < d {
		d = min(d, wait.Between(ttl, ttl+5*time.Millisecond))
	}
	return d
}

// sleep sleeps for d, or until sub notifies. It returns ctx's error or ErrClosed if
// these come first.
func (l *Locker) sleep(ctx context.Context, sub *subscription, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	var notified <-chan struct{}
	if sub != nil {
		notified = sub.notified
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

// subscribe makes the engine notify the head when key may have become free. It returns
// nil if the engine cannot, now or ever. The head makes no attempt meanwhile, so a silent engine
// gets no more time than a poll, or a ttl.
func (l *Locker) subscribe(ctx context.Context, key string) *subscription {
	waker, ok := l.engine.(lockengine.Waker)
	if !ok {
		return nil
	}
	sub := &subscription{notified: make(chan struct{}, 1)}
	ctx, cancel := within(ctx, min(floorTo, l.cfg.TTL))
	defer cancel()
	stop, err := waker.Watch(ctx, key, func() { wait.Wake(sub.notified) })
	if err != nil {
		l.cfg.Logger.Debug("subscribe to the release of a lock", "key", key, "error", err)
		return nil
	}
	sub.stop = stop
	l.queues.setSubscription(key, sub)
	return sub
}
