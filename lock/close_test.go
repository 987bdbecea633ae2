package lock_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

func TestCloseWaitsForLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memlock.New()
		l := newLocker(t, engine, lock.Config{TTL: ttl, MaxHold: -1})
		lease := acquire(t, l, "k")
		closed := make(chan error, 2)
		for range 2 {
			go func() { closed <- l.Close(t.Context()) }()
		}
		pass(10 * ttl)
		wantAlive(t, lease, true) // it is renewed as before
		if len(closed) != 0 {
			t.Fatal("Close did not wait for the lease")
		}
		_, err := l.TryAcquire(t.Context(), "another key")
		wantIs(t, err, lock.ErrClosed)
		_, err = l.Acquire(t.Context(), "another key")
		wantIs(t, err, lock.ErrClosed)

		release(t, lease)
		for range 2 {
			if err := <-closed; err != nil {
				t.Errorf("Close: %v", err)
			}
		}
	})
}

func TestCloseEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memlock.New()
		holder := acquire(t, newLocker(t, engine, lock.Config{}), "k")
		l := newLocker(t, engine, lock.Config{})
		failed := make(chan error)
		for range 3 { // one polls, two queue
			go func() {
				_, err := l.Acquire(t.Context(), "k")
				failed <- err
			}()
		}
		pass(time.Second)
		go func() { _ = l.Close(t.Context()) }()
		for range 3 {
			wantIs(t, <-failed, lock.ErrClosed)
		}
		release(t, holder)
	})
}

func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, memlock.New(), lock.Config{TTL: ttl})
		lease := acquire(t, l, "k")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		wantIs(t, l.Close(ctx), context.DeadlineExceeded)
		if took := time.Since(start); took != time.Minute {
			t.Errorf("Close took %v, want until its context ended", took)
		}
		wantAlive(t, lease, false)
		wantIs(t, context.Cause(lease.Context()), lock.ErrClosed)
		wantIs(t, lease.Release(t.Context()), lock.ErrLost, lock.ErrClosed)
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

// A lease that Close gave up is not a lock that failed: callers can tell, the log
// has no warning, and nobody else gets the lock before it expires.
func TestLeaseGivenUpByCloseIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, log := newFaults(), new(logbook)
		l := newLocker(t, engine, lock.Config{TTL: ttl, Logger: slog.New(log)})
		lease := acquire(t, l, "k")
		local, err := l.TryAcquire(t.Context(), "local", lock.Local())
		wantIs(t, err, nil)
		wantIs(t, l.Close(endedContext()), context.Canceled)
		for _, given := range []*lock.Lease{lease, local} {
			wantAlive(t, given, false)
			wantIs(t, context.Cause(given.Context()), lock.ErrClosed)
			wantIs(t, given.Release(t.Context()), lock.ErrClosed)
		}
		if n, most := log.levels("lock lost"); n != 2 || most > slog.LevelInfo {
			t.Errorf("%d lines about lost locks, at most at level %v, want 2 at level INFO", n, most)
		}
		other := newLocker(t, engine, lock.Config{TTL: ttl})
		pass(ttl - time.Millisecond)
		_, err = other.TryAcquire(t.Context(), "k")
		wantHeld(t, err, "k", lease.Grant().Owner)
		pass(time.Millisecond)
		release(t, acquire(t, other, "k"))
	})
}

// A lock that has failed is none that Close gave up.
func TestLossIsNotTakenForClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		lease := acquire(t, l, "k")
		engine.Forget("k")
		pass(ttl)
		wantIs(t, l.Close(endedContext()), nil)
		wantAlive(t, lease, false)
		if err := lease.Err(); errors.Is(err, lock.ErrClosed) {
			t.Errorf("the lease ended with %v", err)
		}
	})
}

// Nothing is left to wait for, so an ended context does no harm.
func TestCloseOfIdleLocker(t *testing.T) {
	for range 100 {
		l, err := lock.New(memlock.New(), lock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		release(t, acquire(t, l, "k"))
		if err := l.Close(endedContext()); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
}

func TestCloseDoesNotWaitForAbandonedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, memlock.New(), lock.Config{TTL: ttl})
		lease := acquire(t, l, "k")
		lease.Abandon()
		start := time.Now()
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("Close took %v", took)
		}
	})
}

// An abandoned lease that ends is not counted a second time.
func TestCloseAfterAbandonedLeaseEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, memlock.New(), lock.Config{TTL: ttl})
		acquire(t, l, "abandoned").Abandon()
		lease := acquire(t, l, "k")
		pass(ttl)
		var closed bool
		go func() {
			_ = l.Close(t.Context())
			closed = true
		}()
		synctest.Wait()
		if closed {
			t.Error("Close did not wait for the other lease")
		}
		release(t, lease)
		synctest.Wait()
		if !closed {
			t.Error("Close goes on waiting")
		}
	})
}

// A program that ends cancels what it waits for: what may have been taken
// meanwhile must not stay locked.
func TestCloseReleasesWhatMayBeHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		engine.onAcquire(engine.answerLost)
		engine.onRelease(releaseDown)
		_, err := l.TryAcquire(t.Context(), "k")
		wantIs(t, err, errDown)
		pass(100 * time.Millisecond) // the first release has failed, the next one is not due
		engine.onAcquire(nil)
		engine.onRelease(nil)
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		release(t, acquire(t, newLocker(t, engine, lock.Config{}), "k"))
	})
}

func TestCloseWhileEngineHangs(t *testing.T) {
	for name, tt := range map[string]struct {
		renew renewFunc
		wait  time.Duration // of Close
		stuck bool
	}{
		"until its context ends": {renew: renewHangs, wait: time.Second},
		"for ever": {renew: func(_ context.Context, hs []lockengine.Request, _ time.Duration) []error {
			<-time.After(time.Hour)
			return sameVerdict(hs, errDown)
		}, wait: 2 * time.Second, stuck: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				l, err := lock.New(engine, lock.Config{TTL: ttl})
				if err != nil {
					t.Fatal(err)
				}
				lease := acquire(t, l, "k")
				engine.onRenew(tt.renew)
				pass(renewed) // a renewal is on its way
				release(t, lease)
				start := time.Now()
				if err := l.Close(t.Context()); (err != nil) != tt.stuck {
					t.Errorf("Close: %v", err)
				}
				if took := time.Since(start); took != tt.wait {
					t.Errorf("Close took %v, want %v", took, tt.wait)
				}
				pass(2 * time.Hour)
				if err := l.Close(t.Context()); err != nil {
					t.Errorf("Close when the engine has returned: %v", err)
				}
			})
		})
	}
}

// Requests on their way end with the context of Close.
func TestCloseEndsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl, RequestTimeout: ttl})
		acquire(t, l, "k")
		engine.onRenew(renewHangs)
		pass(renewed)
		start := time.Now()
		err := l.Close(endedContext())
		if took := time.Since(start); !errors.Is(err, context.Canceled) || took != 0 {
			t.Errorf("Close: %v after %v, want its context's error at once", err, took)
		}
	})
}

// An acquire that was with the engine when Close gave up gets a lost lease.
func TestGrantAfterCloseGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		engine.onAcquire(func(ctx context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
			<-time.After(time.Second)
			return engine.Engine.Acquire(ctx, h, ttl)
		})
		got := make(chan *lock.Lease)
		go func() {
			lease, err := l.Acquire(t.Context(), "k")
			if err != nil {
				t.Errorf("Acquire: %v", err)
			}
			got <- lease
		}()
		synctest.Wait()
		wantIs(t, l.Close(endedContext()), context.Canceled)
		lease := <-got
		wantAlive(t, lease, false)
		wantIs(t, lease.Release(t.Context()), lock.ErrLost, lock.ErrClosed)
	})
}

func TestCloseMeetsAcquire(t *testing.T) {
	for range 200 {
		l, err := lock.New(memlock.New(), lock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for {
					lease, err := l.Acquire(t.Context(), string(rune('a'+i%3)))
					if err != nil {
						wantIs(t, err, lock.ErrClosed)
						return
					}
					release(t, lease)
				}
			})
		}
		for range 2 {
			wg.Go(func() {
				if err := l.Close(t.Context()); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		}
		wg.Wait()
	}
}
