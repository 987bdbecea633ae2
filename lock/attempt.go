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

// attempt calls the engine once, and once more for each unused lock of this Locker that
// it found under the key.
func (l *Locker) attempt(ctx context.Context, c acquireCall) (*Lease, error) {
	released := ""
	for {
		lease, err := l.attemptOnce(ctx, c)
		held, ok := errors.AsType[*lockengine.HeldError](err)
		if ok && held.Holder.Owner != released && l.reclaim(ctx, lockengine.Request{Key: c.key, Owner: held.Holder.Owner}) {
			released = held.Holder.Owner
			continue
		}
		return lease, err
	}
}

func (l *Locker) attemptOnce(ctx context.Context, c acquireCall) (*Lease, error) {
	key := c.key
	if err := wait.Err(ctx); err != nil { // nothing is sent that may leave an orphan
		return nil, fmt.Errorf("acquire lock %q: %w", key, err)
	}
	r := lockengine.Request{Key: key, Owner: l.newOwner(), UnlessMarked: c.unlessMarked, Waits: c.waits}
	sent := l.now()
	answer, err := l.callEngine(ctx, r, sent)
	if held, ok := errors.AsType[*lockengine.HeldError](err); ok {
		return nil, held
	}
	if errors.Is(err, lockengine.ErrMarked) {
		if errors.Is(err, lockengine.ErrNoAnswer) {
			l.addOrphan(r, false)
		}
		return nil, fmt.Errorf("acquire lock %q: %w", key, lockengine.ErrMarked)
	}
	if err != nil {
		if mayBeHeld(err) {
			l.addOrphan(r, true)
		}
		if end := wait.Err(ctx); end != nil && !errors.Is(err, end) {
			err = fmt.Errorf("%w: %w", end, err)
		}
		return nil, fmt.Errorf("acquire lock %q: %w", key, err)
	}

	g := &grant{key: r.Key, owner: r.Owner, place: answer.Place, token: answer.Token, granted: l.now(), noHandOver: c.unlessMarked}
	g.renewed(sent, &l.cfg)
	if g.granted >= g.deadline.Load() {
		l.addOrphan(r, false)
		return nil, fmt.Errorf("acquire lock: %w", g.lossError(ErrLost, "the answer took longer than the ttl"))
	}
	return l.newLease(ctx, g, sent), nil
}

// callEngine sends an acquire to the engine. An answer that comes when the lock can
// have expired is useless, so the engine has until then. If it panics, or ends the
// goroutine, the lock may have been taken.
func (l *Locker) callEngine(ctx context.Context, r lockengine.Request, sent int64) (answer lockengine.Grant, err error) {
	returned := false
	defer func() {
		if !returned {
			l.addOrphan(r, true)
		}
	}()
	bounded := ctx
	if !l.limited {
		var cancel context.CancelFunc
		bounded, cancel = within(ctx, l.cfg.answerTime())
		defer cancel()
	}
	fail.Point("lock/before-acquire")
	answer, err = l.engine.Acquire(bounded, r, l.cfg.TTL)
	fail.Point("lock/acquire-answered")
	returned = true
	if errors.Is(err, context.DeadlineExceeded) && wait.Err(ctx) == nil {
		err = overdue(err, time.Duration(l.now()-sent))
	}
	return answer, err
}

// overdue is err without the end of a context that is not the caller's. It may be one of the client's
// own, so the error has the time that has passed.
func overdue(err error, took time.Duration) error {
	kind := lockengine.ErrNoAnswer
	if errors.Is(err, lockengine.ErrNotSent) && !mayBeHeld(err) {
		kind = lockengine.ErrNotSent
	}
	return fmt.Errorf("%w within %v: %s", kind, took.Round(time.Millisecond), err.Error())
}

// within returns a context that ends with ctx, and d from now at the latest.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}
