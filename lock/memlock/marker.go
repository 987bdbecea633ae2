package memlock

import (
	"context"
	"time"

	"github.com/belaygo/belay/lock"
)

// AcquireUnlessMarked implements lock.Marker.
func (e *Engine) AcquireUnlessMarked(ctx context.Context, h lock.Hold, ttl time.Duration) (lock.Grant, error) {
	if err := ctx.Err(); err != nil {
		return lock.Grant{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if until, ok := e.marks[h.Key]; ok {
		if time.Now().Before(until) {
			return lock.Grant{}, lock.ErrMarked
		}
		delete(e.marks, h.Key)
	}
	return e.acquire(h, ttl)
}

// ReleaseMarked implements lock.Marker.
func (e *Engine) ReleaseMarked(ctx context.Context, h lock.Hold, keep time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.marks[h.Key] = time.Now().Add(keep)
	e.sweep()
	return e.release(h)
}

// sweep looks at a few markers and drops those that have expired, so that there
// are never many of keys that nobody asks for again. The caller holds e.mu.
func (e *Engine) sweep() {
	const few = 4
	now, seen := time.Now(), 0
	for key, until := range e.marks {
		if !now.Before(until) {
			delete(e.marks, key)
		}
		if seen++; seen == few {
			return
		}
	}
}
