package lock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/belaygo/belay/lock"
)

// A waiter is an Acquire on its way.
type waiter struct {
	cancel context.CancelFunc

	mu    sync.Mutex
	lease *lock.Lease
	err   error
}

// wait has a caller wait for key in a synctest bubble.
func wait(t *testing.T, l *lock.Locker, key string) *waiter {
	t.Helper()
	return waitWith(t.Context(), t, l, key)
}

func waitWith(ctx context.Context, t *testing.T, l *lock.Locker, key string, opts ...lock.AcquireOption) *waiter {
	t.Helper()
	w := new(waiter)
	ctx, w.cancel = context.WithCancel(ctx)
	t.Cleanup(w.cancel)
	go func() {
		lease, err := l.Acquire(ctx, key, opts...)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lease, w.err = lease, err
	}()
	synctest.Wait()
	return w
}

// result returns what Acquire has returned by now, if it has.
func (w *waiter) result() (*lock.Lease, error) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lease, w.err
}

// got returns the lease that the waiter must have by now.
func (w *waiter) got(tb testing.TB) *lock.Lease {
	tb.Helper()
	lease, err := w.result()
	if lease == nil {
		tb.Fatalf("the waiter has not got the lock: %v", err)
	}
	return lease
}

// wantWaiting checks that Acquire has not returned yet.
func (w *waiter) wantWaiting(tb testing.TB) {
	tb.Helper()
	if lease, err := w.result(); lease != nil || err != nil {
		tb.Fatalf("the wait is over: lease %v, error %v", lease, err)
	}
}

// failed returns the error that the waiter must have by now.
func (w *waiter) failed(tb testing.TB) error {
	tb.Helper()
	lease, err := w.result()
	if err == nil {
		tb.Fatalf("the wait has not failed: lease %v", lease)
	}
	return err
}
