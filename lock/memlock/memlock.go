// Package memlock keeps locks in the memory of one process, for tests and for programs
// that run once.
//
//	locker, err := lock.New(memlock.New(), lock.Config{})
//
// It excludes callers of the same engine only.
package memlock

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/lasting"
	"github.com/belaygo/belay/lock/lockengine"
)

// New returns an engine in which nothing is locked. It keeps markers, and is safe for
// concurrent use.
func New() lockengine.Engine {
	return &engine{locks: make(map[string]entry), marks: make(map[string]entry)}
}

type engine struct {
	mu           sync.Mutex
	locks, marks map[string]entry
	token        int64
}

// An entry is a lock, or a marker, which has no owner.
type entry struct {
	owner   string
	expires time.Time
}

var place = lockengine.Place{Node: "memory", Slot: -1}

func (e *engine) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	if err := ctx.Err(); err != nil {
		return lockengine.Grant{}, err
	}
	if err := lasting.Check("memlock", ttl); err != nil {
		return lockengine.Grant{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if _, marked := live(e.marks, r.Key, now); marked && r.UnlessMarked {
		return lockengine.Grant{}, lockengine.ErrMarked
	}
	if cur, ok := live(e.locks, r.Key, now); ok && cur.owner != r.Owner {
		return lockengine.Grant{}, &lockengine.HeldError{Key: r.Key, Holder: cur.holder(now)}
	}
	e.locks[r.Key] = entry{r.Owner, now.Add(ttl)}
	e.token = max(e.token+1024, now.UnixMicro()*1024)
	return lockengine.Grant{Token: e.token, Place: place}, nil
}

func (e *engine) Renew(ctx context.Context, rs []lockengine.Request, ttl time.Duration) []error {
	if err := lasting.Check("memlock", ttl); err != nil {
		return slices.Repeat([]error{err}, len(rs))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	errs := make([]error, len(rs))
	for i, r := range rs {
		if cur, ok := live(e.locks, r.Key, now); !ok || cur.owner != r.Owner {
			errs[i] = lockengine.ErrNotHeld
			continue
		}
		e.locks[r.Key] = entry{r.Owner, now.Add(ttl)}
	}
	return errs
}

func (e *engine) Release(ctx context.Context, r lockengine.Request) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if r.Mark > 0 {
		e.marks[r.Key] = entry{expires: now.Add(r.Mark)}
		sweep(e.marks, now)
	}
	if cur, ok := live(e.locks, r.Key, now); !ok || cur.owner != r.Owner {
		return lockengine.ErrNotHeld
	}
	delete(e.locks, r.Key)
	return nil
}

func (e *engine) Inspect(ctx context.Context, key string) (lockengine.Holder, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	cur, ok := live(e.locks, key, now)
	if !ok {
		return lockengine.Holder{Place: place}, nil
	}
	return cur.holder(now), nil
}

// Close does nothing: the engine has no goroutines.
func (e *engine) Close(context.Context) error { return nil }

// live returns the entry at key unless it has expired.
func live(entries map[string]entry, key string, now time.Time) (entry, bool) {
	cur, ok := entries[key]
	if ok && !now.Before(cur.expires) {
		delete(entries, key)
		return entry{}, false
	}
	return cur, ok
}

// sweep looks at a few entries and drops the expired ones, so that entries of unused
// keys never pile up.
func sweep(entries map[string]entry, now time.Time) {
	const few = 4
	seen := 0
	for key := range entries {
		live(entries, key, now)
		if seen++; seen == few {
			return
		}
	}
}

func (cur entry) holder(now time.Time) lockengine.Holder {
	return lockengine.Holder{Owner: cur.owner, TTL: cur.expires.Sub(now), Place: place}
}
