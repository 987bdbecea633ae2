package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

var errDown = errors.New("engine: down")

// faults is a memlock that counts requests and fails as it is told.
type faults struct {
	lockengine.Engine

	mu      sync.Mutex
	n       requests
	acquire acquireFunc // what happens instead, nil = as it should be
	renew   renewFunc
	release releaseFunc
}

type requests struct{ acquire, renew, release int }

type (
	acquireFunc func(context.Context, lockengine.Request, time.Duration) (lockengine.Grant, error)
	renewFunc   func(context.Context, []lockengine.Request, time.Duration) []error
	releaseFunc func(context.Context, lockengine.Request) error
)

func newFaults() *faults { return &faults{Engine: memlock.New()} }

func (f *faults) Acquire(ctx context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	f.mu.Lock()
	f.n.acquire++
	do := f.acquire
	f.mu.Unlock()
	if do != nil {
		return do(ctx, h, ttl)
	}
	return f.Engine.Acquire(ctx, h, ttl)
}

func (f *faults) Renew(ctx context.Context, hs []lockengine.Request, ttl time.Duration) []error {
	f.mu.Lock()
	f.n.renew++
	do := f.renew
	f.mu.Unlock()
	if do != nil {
		return do(ctx, hs, ttl)
	}
	return f.Engine.Renew(ctx, hs, ttl)
}

func (f *faults) Release(ctx context.Context, h lockengine.Request) error {
	f.mu.Lock()
	f.n.release++
	do := f.release
	f.mu.Unlock()
	if do != nil {
		return do(ctx, h)
	}
	return f.Engine.Release(ctx, h)
}

// sent returns how many requests there were.
func (f *faults) sent() requests {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

func (f *faults) onAcquire(do acquireFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acquire = do
}

func (f *faults) onRenew(do renewFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renew = do
}

func (f *faults) onRelease(do releaseFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.release = do
}

func (f *faults) wantSent(tb testing.TB, want requests) {
	tb.Helper()
	if sent := f.sent(); sent != want {
		tb.Errorf("requests = %+v, want %+v", sent, want)
	}
}

// Forget loses the lock on key, as a Redis master does that dies before its replica
// has it.
func (f *faults) Forget(key string) {
	ctx := context.Background()
	holder, _ := f.Inspect(ctx, key)
	_ = f.Engine.Release(ctx, lockengine.Request{Key: key, Owner: holder.Owner})
}

// wantFree checks what the engine says.
func (f *faults) wantFree(tb testing.TB, key string) {
	tb.Helper()
	if holder, _ := f.Inspect(context.Background(), key); holder.Owner != "" {
		tb.Errorf("%q is held by %s", key, holder.Owner)
	}
}

// Ready-made faults.

func renewDown(_ context.Context, hs []lockengine.Request, _ time.Duration) []error {
	return sameVerdict(hs, errDown)
}

// renewHangs answers when its context ends.
func renewHangs(ctx context.Context, hs []lockengine.Request, _ time.Duration) []error {
	<-ctx.Done()
	return sameVerdict(hs, ctx.Err())
}

func sameVerdict(hs []lockengine.Request, err error) []error {
	errs := make([]error, len(hs))
	for i := range errs {
		errs[i] = err
	}
	return errs
}

func releaseDown(context.Context, lockengine.Request) error { return errDown }

// answerLost acquires, and then the answer gets lost.
func (f *faults) answerLost(ctx context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	if _, err := f.Engine.Acquire(ctx, h, ttl); err != nil {
		return lockengine.Grant{}, err
	}
	return lockengine.Grant{}, errDown
}
