package lock_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newLocker returns a Locker that is closed when the test ends, whatever it
// still holds then.
func newLocker(tb testing.TB, engine lockengine.Engine, cfg lock.Config) *lock.Locker {
	tb.Helper()
	if cfg.Logger == nil { // what is lost here is lost on purpose
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	l, err := lock.New(engine, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := l.Close(endedContext()); err != nil && !errors.Is(err, context.Canceled) {
			tb.Errorf("Close: %v", err)
		}
	})
	return l
}

func endedContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func acquire(tb testing.TB, l *lock.Locker, key string) *lock.Lease {
	tb.Helper()
	lease, err := l.TryAcquire(tb.Context(), key)
	if err != nil {
		tb.Fatalf("TryAcquire(%q): %v", key, err)
	}
	return lease
}

func release(tb testing.TB, lease *lock.Lease) {
	tb.Helper()
	if err := lease.Release(context.Background()); err != nil {
		tb.Errorf("Release: %v", err)
	}
}

// wantHeld checks that err says that owner, which may be unknown, has key.
func wantHeld(tb testing.TB, err error, key, owner string) {
	tb.Helper()
	var held *lockengine.HeldError
	if !errors.As(err, &held) {
		tb.Fatalf("error is %v, want a *HeldError", err)
	}
	if held.Key != key || held.Holder.Owner != owner {
		tb.Errorf("%q is held by %q, want %q by %q", held.Key, held.Holder.Owner, key, owner)
	}
}

func wantIs(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			tb.Errorf("error is %v, want one that matches %q", err, target)
		}
	}
}

// wantAlive checks that lease may be believed in, or that it was lost.
func wantAlive(tb testing.TB, lease *lock.Lease, alive bool) {
	tb.Helper()
	err, cause := lease.Err(), context.Cause(lease.Context())
	switch {
	case alive && (err != nil || cause != nil):
		tb.Errorf("lease has ended: Err is %v, cause is %v", err, cause)
	case !alive:
		wantIs(tb, err, lock.ErrLost)
		wantIs(tb, cause, lock.ErrLost)
	}
}

// pass lets d pass in a synctest bubble, and what is due then happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func manyKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "order:" + strconv.Itoa(i)
	}
	return keys
}
