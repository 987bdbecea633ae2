package switchlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/lasting"
	"github.com/belaygo/belay/lock/lockengine"
)

// Acquire implements lockengine.Engine. While locks move, both engines must grant the lock. An error
// matches lockengine.ErrNotSent if the record could not be read in time, and lockengine.ErrDenied if ttl is
// longer than Record.TTL, or this process does not have the engine.
func (e *engine) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	if err := lasting.Check("switchlock", ttl); err != nil {
		return lockengine.Grant{}, err
	}
	p, err := e.plan(ctx, ttl)
	if err != nil {
		e.metrics.refused(err)
		return lockengine.Grant{}, err
	}
	grants := make([]lockengine.Grant, len(p.asked))
	for i, engine := range p.asked {
		grants[i], err = engine.Acquire(ctx, r, ttl)
		if err != nil && i == 0 {
			return lockengine.Grant{}, err
		}
		if err != nil {
			return lockengine.Grant{}, undo(ctx, p.asked[0], r, err)
		}
		e.saw(p.names[i], grants[i].Token)
	}
	if p.crosses() {
		e.hasBoth(p.record.Epoch, r)
	}
	g := grants[p.keeper()]
	g.Token += p.record.Base
	return g, nil
}

// undoTimeout is how long undo has for its release.
const undoTimeout = time.Second

// undo releases a lock in the first engine, because the second did not grant it. It returns
// cause, which is the second engine's error, and says that the first one had granted it. If the release fails, the error matches ErrNoAnswer,
// so that the Locker releases the lock in both.
func undo(ctx context.Context, first lockengine.Engine, r lockengine.Request, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	r.Mark, r.Quiet = 0, true
	if err := first.Release(ctx, r); err != nil && !errors.Is(err, lockengine.ErrNotHeld) {
		return fmt.Errorf("%w: switchlock: the new engine did not grant the lock: %s; release in the old engine: %s", lockengine.ErrNoAnswer, cause.Error(), err.Error())
	}
	if held, ok := errors.AsType[*lockengine.HeldError](cause); ok {
		partial := *held
		partial.Partial = true
		return &partial
	}
	return cause
}

// hasBoth notes that a lock is in both engines, unless the switch of this epoch is over.
func (e *engine) hasBoth(epoch int64, r lockengine.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.view.known.Epoch == epoch && e.view.crosses(e.now()) {
		e.both[holdOf(r)] = true
	}
}

// saw notes the greatest token of an engine.
func (e *engine) saw(name string, token int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen[name] = max(e.seen[name], token)
}
