package guardtest

import (
	"context"
	"sync"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
)

// engine is a memlock.Engine that can lose every lock.
type engine struct {
	*memlock.Engine

	mu    sync.Mutex
	loses bool
}

func (e *engine) lose(all bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.loses = all
}

// Acquire acquires h. If locks are to be lost, it forgets the lock that is there before,
// and its own after.
func (e *engine) Acquire(ctx context.Context, h lock.Hold, ttl time.Duration) (lock.Grant, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.loses {
		e.Forget(h.Key)
		defer e.Forget(h.Key)
	}
	return e.Engine.Acquire(ctx, h, ttl)
}
