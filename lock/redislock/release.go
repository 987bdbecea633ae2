package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// Release implements lockengine.Engine. A marker lasts a millisecond at least.
func (e *engine) Release(ctx context.Context, r lockengine.Request) error {
	if r.Mark > 0 {
		r.Mark = max(r.Mark, time.Millisecond)
	}
	err := e.release(ctx, r)
	e.metrics.count(releaseScript, err)
	return err
}

func (e *engine) release(ctx context.Context, r lockengine.Request) error {
	cmd := e.releaseOf(e.lockName(r.Key), r, "")
	if err := e.run(ctx, cmd); err != nil {
		return err
	}
	return cmd.done()
}

// releaseOf returns the release of a lock. It takes the engine with the id leaves, if
// any, out of the lock's line.
func (e *engine) releaseOf(name string, r lockengine.Request, leaves string) *command {
	tells := channel(name)
	if r.Quiet {
		tells = ""
	}
	cmd := &command{
		script: releaseScript, name: name, line: e.lineOf(name),
		args: arguments(r.Owner, tells, e.topology.publish(), e.waker.listens(name), leaves),
	}
	if r.Mark > 0 {
		cmd.marker, cmd.setMarker = e.beside("done", name), r.Mark
	}
	return cmd
}

// undoAcquire releases a lock that was granted, but must not be used.
func (e *engine) undoAcquire(ctx context.Context, r lockengine.Request) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := e.release(ctx, r); err != nil && !errors.Is(err, lockengine.ErrNotHeld) {
		// Its text only: whatever the outcome of the release, the acquire was executed.
		return fmt.Errorf("%w: release it again: %s", lockengine.ErrNoAnswer, err.Error())
	}
	return nil
}
