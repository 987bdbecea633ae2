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

// releaseAgain releases a lock that was released while it was renewed.
func (p plan) releaseAgain(ctx context.Context, r lock.Request) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	if err := p.release(ctx, r, false); err != nil {
		return err
	}
	return lock.ErrNotHeld
}

// forget reports whether a lock was in both engines. A renewal that is on its way learns that
// it was released.
func (e *Engine) forget(r lock.Request) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := hold{r.Key, r.Owner}
	if _, on := e.renewing[h]; on {
		e.renewing[h] = true
	}
	was := e.both[h]
	delete(e.both, h)
	return was
}
