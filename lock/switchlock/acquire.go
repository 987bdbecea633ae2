package switchlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/lock"
)

// Acquire implements lock.Engine. While locks move, both engines have to grant the lock.
func (e *Engine) Acquire(ctx context.Context, r lock.Request, ttl time.Duration) (lock.Grant, error) {
	p, err := e.plan(ctx, ttl)
	if err != nil {
		e.metrics.refused(err)
		return lock.Grant{}, err
	}
	grants := make([]lock.Grant, len(p.asked))
	for i, engine := range p.asked {
		grants[i], err = engine.Acquire(ctx, r, ttl)
		if err != nil && i == 0 {
			return lock.Grant{}, err
		}
		if err != nil {
			return lock.Grant{}, undo(ctx, p.asked[0], r, err)
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

// undoTimeout is how long a lock that was taken in vain may take to be released.
const undoTimeout = time.Second

// undo releases in the first engine what the second one did not grant, because of cause. If
// that may be in vain, the acquire has no answer: the Locker releases it in both.
func undo(ctx context.Context, first lock.Engine, r lock.Request, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	r.Mark = 0
	if err := first.Release(ctx, r); err != nil && !errors.Is(err, lock.ErrNotHeld) {
		return fmt.Errorf("%w: switchlock: one of two engines: %s; release in the other: %s", lock.ErrNoAnswer, cause.Error(), err.Error())
	}
	return cause
}

// hasBoth notes that a lock is in both engines, by the switch of this epoch.
func (e *Engine) hasBoth(epoch int64, r lock.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.view.known.Epoch == epoch && e.view.crosses(e.now()) {
		e.both[holdOf(r)] = true
	}
}

// saw notes the greatest token of an engine.
func (e *Engine) saw(name string, token int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen[name] = max(e.seen[name], token)
}
