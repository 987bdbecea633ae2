package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock/lockengine"
)

// Acquire acquires the lock on key, and waits for it until ctx ends. Then it returns an
// error that matches ErrHeld and ctx.Err(). It also waits while the engine cannot be
// reached, as in a failover, for at most a ttl in a row, and for one request of each caller of this
// Locker that waits for key before it. Then it returns the engine's error. Each request has less than
// a ttl to be answered. An engine may notice that ctx is cancelled
// only when a request on its way is answered or times out, as one of redislock.Open within a second.
//
// The lease carries the values of ctx but not its end: it lasts until it is released
// or lost. If the engine grants the lock as ctx ends, Acquire may return either. A lease that
// was handed over by a caller of this process may be lost already: earlier callers may have
// worked without a lock.
//
// If ctx is the context of a living lease of this Locker on key, or derived from it,
// Acquire returns another lease on that lock at once, whatever the options, even while
// Close waits for the first lease. The new lease's context has the values of the first
// one's, and the last Release releases the lock. Goroutines that share such a context
// do not exclude each other.
func (l *Locker) Acquire(ctx context.Context, key string, opts ...AcquireOption) (*Lease, error) {
	return l.acquireCounted(ctx, newAcquireCall(key, opts))
}

// TryAcquire is Acquire without waiting: it returns an error that matches ErrHeld at
// once if another caller has the key. When that is a caller of this Locker, or one is about to acquire
// it, the engine is not called. A second request is sent if a grant that nobody uses
// had to be released first, which takes up to Config.RequestTimeout.
func (l *Locker) TryAcquire(ctx context.Context, key string, opts ...AcquireOption) (*Lease, error) {
	c := newAcquireCall(key, opts)
	c.try = true
	return l.acquireCounted(ctx, c)
}

// acquireCounted is acquire with metrics, in which a local one does not count.
func (l *Locker) acquireCounted(ctx context.Context, c acquireCall) (*Lease, error) {
	c.came = l.now()
	lease, err := l.acquire(ctx, c)
	if !c.local {
		l.metrics.acquired(err, time.Duration(l.now()-c.came))
	}
	return lease, err
}

func (l *Locker) acquire(ctx context.Context, c acquireCall) (*Lease, error) {
	if err := checkKey(c.key); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("acquire lock %q: %w", c.key, err)
	}
	if lease := l.reenter(ctx, c.key); lease != nil {
		return lease, nil
	}
	if !l.begin() {
		return nil, ErrClosed
	}
	a, err := l.enter(ctx, c)
	switch {
	case err != nil:
		l.finish()
		return nil, err
	case a.grant != nil:
		fail.Point("lock/hand-over-taken")
		return l.releaseIfEnded(ctx, l.acceptHandOver(ctx, a.grant))
	case c.local:
		return l.acquireLocal(ctx, c.key), nil
	}
	c.waits = a.waited
	return l.acquireAsHead(ctx, c)
}

// enter makes the caller the head of the key's queue, or returns why it is not.
func (l *Locker) enter(ctx context.Context, c acquireCall) (admission, error) {
	if c.try {
		if l.queues.tryEnter(c.key) {
			return admission{}, nil
		}
		head, heard := l.queues.headOf(c.key)
		if err := heard.failed(); err != nil && !c.local {
			return admission{}, err
		}
		return admission{}, l.heldHere(c.key, head, heard)
	}
	a, ok := l.queues.enter(ctx, c.key, c.unlessMarked, l.closing)
	if !ok {
		return admission{}, l.notAdmitted(ctx, c)
	}
	if a.waited && a.grant == nil && l.waitEnd(ctx) != nil { // both came at once
		defer l.queues.leave(c.key)
		return admission{}, l.notAdmitted(ctx, c)
	}
	return a, nil
}

// notAdmitted returns the error of a caller that did not become the head of its key's
// queue. If the head cannot reach the engine, the callers behind it that need the engine get
// that error, too.
func (l *Locker) notAdmitted(ctx context.Context, c acquireCall) error {
	end := wait.Err(ctx)
	if end == nil {
		return ErrClosed
	}
	head, heard := l.queues.headOf(c.key)
	if err := heard.failed(); err != nil && !c.local {
		return fmt.Errorf("%w: %w", end, err)
	}
	return endedBy(l.heldHere(c.key, head, heard), end)
}

// releaseIfEnded releases a lease that was handed over if its caller's ctx ended
// while it waited. If the lock was lost, the caller still gets the lease: no other
// caller would learn of the loss.
func (l *Locker) releaseIfEnded(ctx context.Context, lease *Lease) (*Lease, error) {
	end, alive := wait.Err(ctx), lease.Err() == nil
	if end == nil || !alive { // the caller learns of a loss
		return lease, nil
	}
	err := lease.Release(ctx)
	if errors.Is(err, ErrLost) {
		return lease.lost(err), nil
	}
	if err != nil {
		l.cfg.Logger.Debug("release lock that nobody wants any more", "key", lease.grant.key, "error", err)
	}
	return nil, endedBy(l.heldHere(lease.grant.key, lease.grant, nil), end)
}

// heldHere returns the error of a caller whose key another caller of this process has. g is that
// other caller's grant, or nil if it waits for the lock itself. In that case the error has the
// holder in the engine's last answer.
func (l *Locker) heldHere(key string, g *grant, heard *news) *lockengine.HeldError {
	if g == nil {
		return &lockengine.HeldError{Key: key, Holder: heard.lastHolder()}
	}
	return &lockengine.HeldError{Key: key, Holder: g.holder(l.now()), Local: true}
}

// acquireAsHead acquires the lock from the engine, for the head of the key's queue.
// The head leaves the queue unless it gets a lease, even if the engine panics.
func (l *Locker) acquireAsHead(ctx context.Context, c acquireCall) (lease *Lease, err error) {
	var first *answer
	if c.waits {
		var isHead bool
		if first, isHead = l.inquire(ctx, c); !isHead {
			return nil, l.notAdmitted(ctx, c)
		}
	}
	defer func() {
		if lease == nil {
			l.queues.leave(c.key)
			l.finish()
		}
	}()
	if c.try {
		lease, err = l.attempt(ctx, c)
	} else {
		lease, err = l.wait(ctx, c, first)
	}
	if err != nil {
		return nil, err
	}
	l.queues.setGrant(c.key, lease.grant)
	l.track(lease.grant)
	fail.Point("lock/granted")
	return lease, nil
}

// acquireLocal makes the head of the key's queue a holder that the engine does not
// know of.
func (l *Locker) acquireLocal(ctx context.Context, key string) *Lease {
	now := l.now()
	g := &grant{key: key, place: lockengine.Place{Slot: -1}, granted: now, due: never, noHandOver: true}
	g.deadline.Store(never)
	lease := l.newLease(ctx, g, now)
	l.queues.setGrant(key, g)
	l.track(g)
	return lease
}
