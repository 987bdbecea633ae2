package lock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

var errUnsent = fmt.Errorf("%w: connection refused", lockengine.ErrNotSent)

func releaseUnsent(context.Context, lockengine.Request) error { return errUnsent }

// failRelease has the holder of k meet an engine that fails.
func failRelease(t *testing.T, l *lock.Locker, engine *faults, fail releaseFunc, want error) {
	t.Helper()
	lease := acquire(t, l, "k")
	engine.onRelease(fail)
	wantIs(t, lease.Release(t.Context()), want)
}

// A master dies, the holder of a lock there is done, and its process ends: the
// lock is free when Close returns.
func TestCloseReleasesThroughFailover(t *testing.T) {
	for name, fault := range map[string]struct {
		fail releaseFunc
		err  error
	}{
		"unsent":     {releaseUnsent, lockengine.ErrNotSent},
		"unanswered": {releaseDown, errDown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				l := newLocker(t, engine, lock.Config{TTL: ttl})
				failRelease(t, l, engine, fault.fail, fault.err)
				time.AfterFunc(5*time.Second, func() { engine.onRelease(nil) })
				if err := l.Close(t.Context()); err != nil {
					t.Errorf("Close: %v", err)
				}
				engine.wantFree(t, "k")
			})
		})
	}
}

// A hold that has expired needs no release.
func TestCloseEndsWhenHoldsHaveExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		failRelease(t, l, engine, releaseUnsent, lockengine.ErrNotSent)
		start := time.Now()
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(start); took < ttl || took > ttl+time.Second {
			t.Errorf("Close took %v, want the ttl, %v", took, ttl)
		}
		engine.wantFree(t, "k")
	})
}

func TestCloseGivesUpReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		failRelease(t, l, engine, releaseUnsent, lockengine.ErrNotSent)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		err := l.Close(ctx)
		wantIs(t, err, context.DeadlineExceeded)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("Close took %v, want until its context ended", took)
		}
		wantIs(t, l.Close(t.Context()), context.Canceled) // it can't be tried any more
	})
}

// Another Close with a shorter patience ends both.
func TestCloseGivesUpForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		failRelease(t, l, engine, releaseUnsent, lockengine.ErrNotSent)
		closed := make(chan error)
		go func() { closed <- l.Close(t.Context()) }()
		synctest.Wait()
		if err := l.Close(endedContext()); !errors.Is(err, context.Canceled) {
			t.Errorf("second Close: %v", err)
		}
		wantIs(t, <-closed, context.Canceled)
	})
}

// An acquire that was not answered may still come, but not for Close to wait
// for: one answer is enough.
func TestCloseAfterUnansweredAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		engine.onAcquire(func(context.Context, lockengine.Request, time.Duration) (lockengine.Grant, error) {
			return lockengine.Grant{}, errDown
		})
		_, err := l.TryAcquire(t.Context(), "k")
		wantIs(t, err, errDown)
		pass(100 * time.Millisecond)
		sent := engine.sent().release
		start := time.Now()
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("Close took %v", took)
		}
		if more := engine.sent().release - sent; more != 1 {
			t.Errorf("Close sent %d releases, want 1", more)
		}
	})
}

// Nothing was sent, so trying again soon costs the engine nothing.
func TestUnsentReleaseIsTriedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		failRelease(t, l, engine, releaseUnsent, lockengine.ErrNotSent)
		pass(time.Second)
		engine.onRelease(nil)
		pass(250 * time.Millisecond)
		engine.wantFree(t, "k")
	})
}

// What has expired while its release was on its way is not left behind.
func TestCloseTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		engine.onAcquire(func(ctx context.Context, _ lockengine.Request, _ time.Duration) (lockengine.Grant, error) {
			return lockengine.Grant{}, lockengine.ErrNoAnswer
		})
		engine.onRelease(func(ctx context.Context, _ lockengine.Request) error {
			<-ctx.Done()
			return lockengine.ErrNoAnswer
		})
		_, err := l.TryAcquire(t.Context(), "k")
		wantIs(t, err, lockengine.ErrNoAnswer)
		for range 2 {
			if err := l.Close(t.Context()); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
	})
}
