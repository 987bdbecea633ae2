package quorumlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/belaygo/belay/lock/lockengine"
)

// Release implements lockengine.Engine. It returns nil when a majority has released the lock, and
// an error that matches lockengine.ErrNotHeld when a majority does not have it.
func (e *engine) Release(ctx context.Context, r lockengine.Request) error {
	if err := e.enter(ctx); err != nil {
		return fmt.Errorf("quorumlock: release: %w", err)
	}
	defer e.running.Done()
	answers := e.releaseAll(ctx, r)
	errs := make([]error, len(e.nodes))
	for i := range errs {
		errs[i] = errSilent
	}
	freed, missing, unsent := 0, 0, 0
	for range e.nodes {
		select {
		case v := <-answers:
			switch errs[v.node] = v.err; {
			case v.err == nil:
				freed++
			case gone(v.err):
				missing++
			case errors.Is(v.err, lockengine.ErrNotSent) && !errors.Is(v.err, lockengine.ErrNoAnswer):
				unsent++
			}
		case <-ctx.Done():
			return failure(ctx, "release", lockengine.ErrNoAnswer, errs)
		}
		switch {
		case freed >= e.majority:
			return nil
		case missing >= e.majority:
			return lockengine.ErrNotHeld
		}
	}
	if unsent+missing == len(errs) {
		return failure(ctx, "release", lockengine.ErrNotSent, errs)
	}
	return failure(ctx, "release", lockengine.ErrNoAnswer, errs)
}

// releaseAll releases a lock at all nodes, and keeps renewals from acquiring it there again.
func (e *engine) releaseAll(ctx context.Context, r lockengine.Request) <-chan vote {
	answers := make(chan vote, len(e.nodes))
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.nodes {
		e.send(holdOf(r), i, func() { answers <- vote{node: i, err: e.releaseAt(ctx, i, r)} })
	}
	e.courses[holdOf(r)].released = true
	return answers
}

// releaseAt releases a lock at one node.
func (e *engine) releaseAt(ctx context.Context, node int, r lockengine.Request) error {
	ctx, cancel := within(ctx, e.cfg.timeout())
	defer cancel()
	return call("release", func() error { return e.nodes[node].Release(ctx, r) })
}
