// Package memlock keeps locks in the memory of one process, for tests and for programs
// that run once.
//
//	locker, err := lock.New(memlock.New(), lock.Config{})
//
// It excludes callers of the same Engine only.
package memlock

import (
	"context"
	"sync"
	"time"

	"github.com/belaygo/belay/lock"
)

// An Engine is a lock.Engine that keeps markers. It is safe for concurrent use.
type Engine struct {
	mu    sync.Mutex
	m     map[string]entry
	marks map[string]time.Time // until when a key is marked as done
	token int64
}

type entry struct {
	owner   string
	expires time.Time
}

var _ lock.Engine = (*Engine)(nil)

// New returns an engine in which nothing is locked.
func New() *Engine {
	return &Engine{m: make(map[string]entry), marks: make(map[string]time.Time)}
}

var place = lock.Place{Node: "memory", Slot: -1}

// Acquire implements lock.Engine.
func (e *Engine) Acquire(ctx context.Context, h lock.Hold, ttl time.Duration) (lock.Grant, error) {
	if err := ctx.Err(); err != nil {
		return lock.Grant{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if h.UnlessMarked && e.marked(h.Key, now) {
		return lock.Grant{}, lock.ErrMarked
	}
	if cur, ok := e.live(h.Key, now); ok && cur.owner != h.Owner {
		return lock.Grant{}, &lock.HeldError{Key: h.Key, Holder: holder(cur, now)}
	}
	e.m[h.Key] = entry{h.Owner, now.Add(ttl)}
	e.token = max(e.token+1024, now.UnixMicro()*1024)
	return lock.Grant{Token: e.token, Place: place}, nil
}

// Renew implements lock.Engine.
func (e *Engine) Renew(ctx context.Context, hs []lock.Hold, ttl time.Duration) []error {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	errs := make([]error, len(hs))
	for i, h := range hs {
		if cur, ok := e.live(h.Key, now); !ok || cur.owner != h.Owner {
			errs[i] = lock.ErrNotHeld
			continue
		}
		e.m[h.Key] = entry{h.Owner, now.Add(ttl)}
	}
	return errs
}

// Release implements lock.Engine.
func (e *Engine) Release(ctx context.Context, h lock.Hold) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h.Mark > 0 {
		e.mark(h.Key, h.Mark)
	}
	if cur, ok := e.live(h.Key, time.Now()); !ok || cur.owner != h.Owner {
		return lock.ErrNotHeld
	}
	delete(e.m, h.Key)
	return nil
}

// Inspect implements lock.Engine.
func (e *Engine) Inspect(ctx context.Context, key string) (lock.Holder, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	cur, ok := e.live(key, now)
	if !ok {
		return lock.Holder{Place: place}, nil
	}
	return holder(cur, now), nil
}

// Forget loses the lock on key, as a Redis master does that dies before its replica has
// it: the holder is not notified. It reports whether there was a lock.
func (e *Engine) Forget(key string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.live(key, time.Now())
	delete(e.m, key)
	return ok
}

// live returns the entry at key unless it has expired. The caller holds e.mu.
func (e *Engine) live(key string, now time.Time) (entry, bool) {
	cur, ok := e.m[key]
	if ok && !now.Before(cur.expires) {
		delete(e.m, key)
		return entry{}, false
	}
	return cur, ok
}

func holder(cur entry, now time.Time) lock.Holder {
	return lock.Holder{Owner: cur.owner, TTL: cur.expires.Sub(now), Place: place}
}
