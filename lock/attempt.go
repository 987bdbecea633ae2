package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/wait"
)

// attempt calls the engine once, and once more if a lock of this Locker that nobody
// uses was in the way.
func (l *Locker) attempt(ctx context.Context, r request) (*Lease, error) {
	lease, err := l.attemptOnce(ctx, r)
	held, ok := errors.AsType[*HeldError](err)
	if ok && l.reclaim(ctx, Hold{Key: r.key, Owner: held.Holder.Owner}) {
		return l.attemptOnce(ctx, r)
	}
	return lease, err
}

func (l *Locker) attemptOnce(ctx context.Context, r request) (*Lease, error) {
	key := r.key
	if err := wait.Err(ctx); err != nil { // nothing is sent that may leave an orphan
		return nil, fmt.Errorf("acquire lock %q: %w", key, err)
	}
	h := Hold{Key: key, Owner: l.newOwner(), UnlessMarked: r.unlessMarked}
	sent := l.now()
	answer, err := l.callEngine(ctx, h)
	if held, ok := errors.AsType[*HeldError](err); ok {
		return nil, held
	}
	if errors.Is(err, ErrMarked) {
		if errors.Is(err, ErrNoAnswer) {
			l.addOrphan(h, false)
		}
		return nil, fmt.Errorf("acquire lock %q: %w", key, ErrMarked)
	}
	if err != nil {
		if mayBeHeld(err) {
			l.addOrphan(h, true)
		}
		if end := wait.Err(ctx); end != nil && !errors.Is(err, end) {
			err = fmt.Errorf("%w: %w", end, err)
		}
		return nil, fmt.Errorf("acquire lock %q: %w", key, err)
	}

	g := &grant{key: h.Key, owner: h.Owner, place: answer.Place, token: answer.Token, granted: l.now(), noHandOver: r.unlessMarked}
	g.renewed(sent, &l.cfg)
	if g.granted >= g.deadline.Load() {
		l.addOrphan(h, false)
		return nil, fmt.Errorf("acquire lock: %w", g.lossError(ErrLost, "the answer took longer than the ttl"))
	}
	return l.newLease(ctx, g, sent), nil
}

// callEngine sends an acquire to the engine. An answer that comes when the lock can
// have expired is useless, so the engine has until then. If it panics, or ends the
// goroutine, the lock may have been taken.
func (l *Locker) callEngine(ctx context.Context, h Hold) (answer Grant, err error) {
	returned := false
	defer func() {
		if !returned {
			l.addOrphan(h, true)
		}
	}()
	bound := l.cfg.TTL - l.cfg.margin()
	bounded, cancel := within(ctx, bound)
	defer cancel()
	answer, err = l.engine.Acquire(bounded, h, l.cfg.TTL)
	returned = true
	if errors.Is(err, context.DeadlineExceeded) && wait.Err(ctx) == nil {
		err = overdue(err, bound)
	}
	return answer, err
}

// overdue is err without the end of a context that is not the caller's.
func overdue(err error, bound time.Duration) error {
	kind := ErrNoAnswer
	if errors.Is(err, ErrNotSent) && !mayBeHeld(err) {
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
