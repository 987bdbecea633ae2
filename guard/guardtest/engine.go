package guardtest

import (
	"context"
	"sync"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// engine is an engine in memory that can lose every lock.
type engine struct {
	lockengine.Engine

	mu    sync.Mutex
	loses bool
}

func (e *engine) lose(all bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.loses = all
}

// Acquire acquires the lock on r.Key. If locks are to be lost, it forgets the lock that is there before,
// and its own after.
func (e *engine) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.loses {
		e.forget(r.Key)
		defer e.forget(r.Key)
	}
	return e.Engine.Acquire(ctx, r, ttl)
}

// forget loses the lock on key, and reports whether there was one.
func (e *engine) forget(key string) bool {
	ctx := context.Background()
	holder, _ := e.Inspect(ctx, key)
	return e.Release(ctx, lockengine.Request{Key: key, Owner: holder.Owner}) == nil
}
