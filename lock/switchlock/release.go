package switchlock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/belaygo/belay/lock"
)

// Release implements lock.Engine. It needs a record, but no fresh one: it releases the lock
// wherever it may be. While locks move, those who wait watch the old engine, as that is asked
// first: so it is released last.
func (e *Engine) Release(ctx context.Context, r lock.Request) error {
	if err := e.awaitRenewal(ctx, r); err != nil {
		return err
	}
	v, err := e.await(ctx, view.check)
	if err != nil {
		return err
	}
	p, err := e.planOf(v.known, v.holding(e.now()))
	if err != nil {
		return err
	}
	slices.Reverse(p.asked)
	return p.release(ctx, r, e.forget(r))
}

// release releases the lock in each engine. wasInBoth says that each has had it.
func (p plan) release(ctx context.Context, r lock.Request, wasInBoth bool) error {
	var freed int
	var gone, failed error
	for _, engine := range p.asked {
		err := engine.Release(ctx, r)
		switch {
		case err == nil:
			freed++
		case errors.Is(err, lock.ErrNotHeld), errors.Is(err, lock.ErrUnusable):
			gone = err
		default:
			failed = errors.Join(failed, err)
		}
	}
	switch {
	case failed != nil && (freed > 0 || gone != nil):
		return fmt.Errorf("%w: switchlock: released in one of two engines: %s", lock.ErrNoAnswer, failed.Error())
	case failed != nil:
		return failed
	case freed == 0 || wasInBoth:
		return gone
	}
	return nil
}

// awaitRenewal waits until a lock is not being renewed in both engines.
func (e *Engine) awaitRenewal(ctx context.Context, r lock.Request) error {
	e.mu.Lock()
	renewing := e.renewing[holdOf(r)]
	e.mu.Unlock()
	if renewing == nil {
		return nil
	}
	select {
	case <-renewing:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: switchlock: it is being renewed: %w", lock.ErrNotSent, ctx.Err())
	}
}

// forget reports whether a lock was in both engines.
func (e *Engine) forget(r lock.Request) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.both[holdOf(r)]
	delete(e.both, holdOf(r))
	return was
}
