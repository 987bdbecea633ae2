package lock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrMarked: the work that the key names is done, and was marked so.
	ErrMarked = errors.New("lock: marked as done")
	// ErrNoMarker: the engine is no Marker, so UnlessMarked means nothing to it.
	ErrNoMarker = errors.New("lock: engine keeps no markers")
)

// A Marker is an engine that can note beside a key that the work which the key
// names is done. A marker is a hint: it is kept for a while, it may get lost, and
// it says nothing about who holds the key.
type Marker interface {
	// AcquireUnlessMarked is Acquire, but for a key with a marker it returns an
	// error that matches ErrMarked, whoever holds the key, and leaves the key as
	// it was. If the error matches ErrNoAnswer, too, it may have been taken.
	// A grant has seen the markers that holders before it set.
	AcquireUnlessMarked(ctx context.Context, h Hold, ttl time.Duration) (Grant, error)

	// ReleaseMarked sets the marker of h.Key until keep has passed, whoever
	// holds the key, and then is Release. It does not tell when the marker could
	// not be set.
	ReleaseMarked(ctx context.Context, h Hold, keep time.Duration) error
}

// An AcquireOption adjusts one Acquire or TryAcquire.
type AcquireOption struct{ unlessMarked bool }

// UnlessMarked has an acquire fail with an error that matches ErrMarked when a
// holder of the key has marked it as done: see Lease.ReleaseMarked. It is for
// keys that name a piece of work, such as one request. The engine is asked about
// every such caller, so there is no hand-over in memory to it or from it. With an
// engine that is no Marker the acquire fails with ErrNoMarker.
func UnlessMarked() AcquireOption { return AcquireOption{unlessMarked: true} }

// A claim is what an acquire asks for.
type claim struct {
	key          string
	unlessMarked bool
}

func (l *Locker) claim(ctx context.Context, key string, opts []AcquireOption) (claim, error) {
	c := claim{key: key}
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

// request sends an acquire to the engine. An answer that comes when the lock can
// have expired is useless, so the engine has until then. If it panics, or ends the
// goroutine, the lock may have been taken.
func (l *Locker) request(ctx context.Context, c claim, h Hold) (answer Grant, err error) {
	returned := false
	defer func() {
		if !returned {
			l.retire(h, true)
		}
	}()
	bound := l.cfg.TTL - l.cfg.margin()
	bounded, cancel := within(ctx, bound)
	defer cancel()
	if c.unlessMarked {
		answer, err = l.engine.(Marker).AcquireUnlessMarked(bounded, h, l.cfg.TTL)
	} else {
		answer, err = l.engine.Acquire(bounded, h, l.cfg.TTL)
	}
	returned = true
	if errors.Is(err, context.DeadlineExceeded) && endOf(ctx) == nil {
		err = overdue(err, bound)
	}
	return answer, err
}

// overdue is err without the end of a context that is not the caller's.
func overdue(err error, bound time.Duration) error {
	kind := ErrNoAnswer
	if errors.Is(err, ErrNotSent) && !mayHold(err) {
		kind = ErrNotSent
	}
	return fmt.Errorf("%w within %v: %s", kind, bound, err.Error())
}

// within returns a context that ends with ctx, and d from now at the latest.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}

// giveBack sends a release to the engine, with a marker if keep is positive and
// the engine can keep one.
func (l *Locker) giveBack(ctx context.Context, h Hold, keep time.Duration) error {
	if m, ok := l.engine.(Marker); ok && keep > 0 {
		return m.ReleaseMarked(ctx, h, keep)
	}
	return l.engine.Release(ctx, h)
}
