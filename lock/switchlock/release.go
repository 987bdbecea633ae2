package switchlock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/belaygo/belay/lock/lockengine"
)

// Release implements lockengine.Engine. It releases the lock in each engine that may have it, by the
// last record that was read, however old that is. While locks move, it releases in the old engine
// last: acquires go there first, so one that comes in between takes nothing that it must give back.
func (e *engine) Release(ctx context.Context, r lockengine.Request) error {
	ended, err := e.releases(ctx, r)
	if err != nil {
		return err
	}
	defer ended()
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

// release releases the lock in each engine. If wasInBoth, each engine has had the lock, and one
// that does not have it any more is a loss.
func (p plan) release(ctx context.Context, r lockengine.Request, wasInBoth bool) error {
	var freed, unsent int
	var gone, failed error
	for _, engine := range p.asked {
		err := engine.Release(ctx, r)
		switch {
		case err == nil:
			freed++
		case errors.Is(err, lockengine.ErrNotHeld), errors.Is(err, lockengine.ErrUnusable):
			gone = err
		default:
			failed = errors.Join(failed, err)
			if errors.Is(err, lockengine.ErrNotSent) {
				unsent++
			}
		}
	}
	switch {
	case failed != nil && p.crosses() && unsent < len(p.asked):
		return fmt.Errorf("%w: switchlock: not released in both engines: %s", lockengine.ErrNoAnswer, failed.Error())
	case failed != nil:
		return failed
	case freed == 0 || wasInBoth:
		return gone
	}
	return nil
}

// releases waits until a lock is not being renewed in both engines. No such renewal of it
// begins before ended is called.
func (e *engine) releases(ctx context.Context, r lockengine.Request) (ended func(), err error) {
	h := holdOf(r)
	e.mu.Lock()
	e.releasing[h]++
	renewing := e.renewing[h]
	e.mu.Unlock()
	if renewing == nil {
		return func() { e.released(h) }, nil
	}
	select {
	case <-renewing.ended:
		return func() { e.released(h) }, nil
	case <-ctx.Done():
		e.released(h)
		return nil, fmt.Errorf("%w: switchlock: release: the lock is still being renewed: %w", lockengine.ErrNotSent, ctx.Err())
	}
}

func (e *engine) released(h hold) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.releasing[h]--; e.releasing[h] == 0 {
		delete(e.releasing, h)
	}
}

// forget ends the note that a lock is in both engines, and reports whether there was one.
func (e *engine) forget(r lockengine.Request) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.both[holdOf(r)]
	delete(e.both, holdOf(r))
	return was
}
