package lock

import (
	"context"
	"fmt"
	"time"
)

// Acquire takes the lock on key, waiting for it until ctx ends. Then it returns
// a *HeldError that also matches ctx.Err(). It also waits while the engine is
// out of reach, in a failover for example, but asks for no more than a ttl in a
// row: then it returns the engine's error. Each request has less than a ttl to be
// answered.
//
// The lease carries the values of ctx but not its end: it lasts until it is
// released or lost. It may be lost when it comes, if a caller of this process
// has handed it over: then the callers before may have worked without a lock.
//
// If ctx comes from a living lease of this Locker on key (Lease.Context,
// Lease.Within), another lease on the same lock is returned at once, whatever
// the options and even while Close waits for that lease; its context has the
// values of the first one's, and the last Release ends the hold. Goroutines that
// share such a context get no exclusion from each other.
func (l *Locker) Acquire(ctx context.Context, key string, opts ...AcquireOption) (*Lease, error) {
	start := l.now()
	lease, err := l.acquire(ctx, key, opts)
	l.metrics.acquired(err, time.Duration(l.now()-start))
	return lease, err
}

func (l *Locker) acquire(ctx context.Context, key string, opts []AcquireOption) (*Lease, error) {
	return l.queue(ctx, key, opts, func(c request, t admission) (*Lease, error) {
		return l.inside(key, func() (*Lease, error) { return l.wait(ctx, c, t) })
	})
}

// TryAcquire takes the lock on key, or returns a *HeldError at once. When a
// caller of this Locker has the key, or is about to ask for it, the engine is
// not asked. Each request has less than a ttl to be answered, as in Acquire. There
// is a second one if a lock that this Locker left behind had to be released first,
// which takes up to Config.RequestTimeout. As to leases in ctx see Acquire.
func (l *Locker) TryAcquire(ctx context.Context, key string, opts ...AcquireOption) (*Lease, error) {
	start := l.now()
	lease, err := l.tryAcquire(ctx, key, opts)
	l.metrics.acquired(err, time.Duration(l.now()-start))
	return lease, err
}

func (l *Locker) tryAcquire(ctx context.Context, key string, opts []AcquireOption) (*Lease, error) {
	return l.try(ctx, key, opts, func(c request) (*Lease, error) {
		return l.inside(key, func() (*Lease, error) { return l.attempt(ctx, c) })
	})
}

// queue waits until the caller is the head of key's queue. Unless it has a lease
// already, or one is handed over to it, get has to acquire one.
func (l *Locker) queue(ctx context.Context, key string, opts []AcquireOption, get func(request, admission) (*Lease, error)) (*Lease, error) {
	c, err := l.newRequest(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	if lease := l.reenter(ctx, key); lease != nil {
		return lease, nil
	}
	if !l.begin() {
		return nil, ErrClosed
	}
	t, ok := l.queues.enter(ctx, c, l.closing)
	if !ok {
		return nil, l.notAdmitted(ctx, key)
	}
	if t.grant != nil {
		return l.releaseIfEnded(ctx, l.acceptHandOver(ctx, t.grant))
	}
	return get(c, t)
}

// try is queue for a caller that does not wait.
func (l *Locker) try(ctx context.Context, key string, opts []AcquireOption, get func(request) (*Lease, error)) (*Lease, error) {
	c, err := l.newRequest(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	if lease := l.reenter(ctx, key); lease != nil {
		return lease, nil
	}
	if !l.begin() {
		return nil, ErrClosed
	}
	if inside, ok := l.queues.tryEnter(key); !ok {
		l.finish()
		return nil, &HeldError{Key: key, Holder: inside.holder()}
	}
	return get(c)
}

// An AcquireOption adjusts one Acquire or TryAcquire.
type AcquireOption struct{ unlessMarked bool }

// UnlessMarked has an acquire fail with an error that matches ErrMarked when a
// holder of the key has marked it as done: see Lease.ReleaseMarked. It is for
// keys that name a piece of work, such as one request. The engine is asked about
// every such caller, so there is no hand-over in memory to it or from it. With an
// engine that is no Marker the acquire fails with ErrNoMarker.
func UnlessMarked() AcquireOption { return AcquireOption{unlessMarked: true} }

func (l *Locker) newRequest(ctx context.Context, key string, opts []AcquireOption) (request, error) {
	c := request{key: key}
	for _, o := range opts {
		c.unlessMarked = c.unlessMarked || o.unlessMarked
	}
	if _, ok := l.engine.(Marker); c.unlessMarked && !ok {
		return c, ErrNoMarker
	}
	if err := CheckKey(key); err != nil {
		return c, err
	}
	if err := ctx.Err(); err != nil {
		return c, fmt.Errorf("acquire lock %q: %w", key, err)
	}
	return c, nil
}

// inside runs get for the head of key's queue, which leaves it unless it gets a
// lease, even if the engine panics.
func (l *Locker) inside(key string, get func() (*Lease, error)) (lease *Lease, err error) {
	defer func() {
		if lease == nil {
			l.queues.leave(key, false)
			l.finish()
		}
	}()
	if lease, err = get(); err != nil {
		return nil, err
	}
	l.queues.setGrant(key, lease.grant)
	l.track(lease.grant)
	return lease, nil
}

// releaseIfEnded releases a lease that was handed over if its caller's ctx ended
// while it waited.
func (l *Locker) releaseIfEnded(ctx context.Context, lease *Lease) (*Lease, error) {
	end, alive := endOf(ctx), lease.Err() == nil
	if end == nil || !alive { // of a loss the caller is told
		return lease, nil
	}
	if err := lease.Release(ctx); err != nil {
		l.cfg.Logger.Debug("release lock that nobody wants any more", "key", lease.Key(), "error", err)
	}
	return nil, &HeldError{Key: lease.Key(), Holder: lease.grant.holder(), Err: end}
}

// notAdmitted is the end of an acquire that did not become the head.
func (l *Locker) notAdmitted(ctx context.Context, key string) error {
	inside := l.queues.grantOf(key)
	l.finish()
	if err := endOf(ctx); err != nil {
		return &HeldError{Key: key, Holder: inside.holder(), Err: err}
	}
	return ErrClosed
}
