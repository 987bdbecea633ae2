package lock_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

func TestLeaseTellsAboutItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type name struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), name{}, "value"))
		l := newLocker(t, memlock.New(), lock.Config{TTL: ttl})
		lease, err := l.Acquire(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		if lease.Grant().Key != "k" || lease.Grant().TTL != ttl || !lease.Grant().AcquiredAt.Equal(time.Now()) {
			t.Errorf("key %q, ttl %v, acquired at %v", lease.Grant().Key, lease.Grant().TTL, lease.Grant().AcquiredAt)
		}
		if want := (lockengine.Place{Node: "memory", Slot: -1}); lease.Grant().Place != want {
			t.Errorf("place is %+v, want %+v", lease.Grant().Place, want)
		}
		if got := lease.Context().Value(name{}); got != "value" {
			t.Errorf("the context's value is %v", got)
		}
		cancel()
		wantAlive(t, lease, true) // the caller's context ends its wait, not its lease

		holder, err := l.Engine().Inspect(t.Context(), "k")
		if err != nil || holder.Owner != lease.Grant().Owner || holder.TTL != ttl {
			t.Errorf("Inspect: %+v, %v", holder, err)
		}
		release(t, lease)

		next := acquire(t, l, "k")
		if next.Grant().Owner == lease.Grant().Owner || next.Grant().Token <= lease.Grant().Token {
			t.Errorf("owner %s, token %d after %s, %d", next.Grant().Owner, next.Grant().Token, lease.Grant().Owner, lease.Grant().Token)
		}
	})
}

func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		lease := acquire(t, l, "k")
		release(t, lease)
		for name, err := range map[string]error{
			"second Release": lease.Release(t.Context()),
			"Err":            lease.Err(),
			"cause":          context.Cause(lease.Context()),
		} {
			if !errors.Is(err, lockengine.ErrNotHeld) || errors.Is(err, lock.ErrLost) {
				t.Errorf("%s: %v, want ErrNotHeld and not ErrLost", name, err)
			}
		}
		pass(2 * ttl)
		if sent := engine.sent(); sent != (requests{acquire: 1, release: 1}) {
			t.Errorf("requests = %+v, want one acquire and one release", sent)
		}
	})
}

func TestReleaseWithEndedContext(t *testing.T) {
	engine := newFaults()
	engine.onRelease(func(ctx context.Context, h lockengine.Request) error {
		return cmp.Or(ctx.Err(), engine.Engine.Release(ctx, h))
	})
	lease := acquire(t, newLocker(t, engine, lock.Config{}), "k")
	if err := lease.Release(endedContext()); err != nil {
		t.Errorf("Release: %v", err)
	}
	acquire(t, newLocker(t, engine, lock.Config{}), "k")
}

func TestReleaseFindsLockGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		lease := acquire(t, l, "k")
		engine.Forget("k")
		wantIs(t, lease.Release(t.Context()), lock.ErrLost)
		wantIs(t, lease.Release(t.Context()), lockengine.ErrNotHeld)
		pass(2 * ttl)
		if n := engine.sent().release; n != 1 {
			t.Errorf("%d releases were sent, want 1", n)
		}
		release(t, acquire(t, l, "k"))
	})
}

// A release that fails is not the end of it.
func TestReleaseFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		lease := acquire(t, l, "k")
		engine.onRelease(releaseDown)
		err := lease.Release(t.Context())
		wantIs(t, err, errDown)
		if errors.Is(err, lock.ErrLost) || errors.Is(err, lockengine.ErrNotHeld) {
			t.Errorf("Release: %v, want neither lost nor not held", err)
		}
		wantIs(t, lease.Release(t.Context()), lockengine.ErrNotHeld)
		_, err = l.TryAcquire(t.Context(), "k")
		wantHeld(t, err, "k", lease.Grant().Owner) // says the engine: the gate is open

		pass(5 * time.Second)
		engine.onRelease(nil)
		pass(time.Second)
		release(t, acquire(t, l, "k"))
	})
}

func TestReleaseHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{RequestTimeout: 2 * time.Second})
		lease := acquire(t, l, "k")
		engine.onRelease(func(ctx context.Context, _ lockengine.Request) error {
			<-ctx.Done()
			return ctx.Err()
		})
		start := time.Now()
		wantIs(t, lease.Release(t.Context()), context.DeadlineExceeded)
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("Release took %v, want the request timeout", took)
		}
	})
}

func TestAbandon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		lease := acquire(t, l, "k")
		pass(renewed)
		lease.Abandon()
		lease.Abandon()
		wantIs(t, lease.Err(), lockengine.ErrNotHeld)
		wantIs(t, lease.Release(t.Context()), lockengine.ErrNotHeld)

		pass(believed - 1)
		_, err := l.TryAcquire(t.Context(), "k")
		wantHeld(t, err, "k", lease.Grant().Owner)
		if sent := engine.sent(); sent != (requests{acquire: 1, renew: 1}) {
			t.Errorf("requests = %+v, want one acquire, one renewal before Abandon, nothing after", sent)
		}
		pass(1)
		_, err = l.TryAcquire(t.Context(), "k")
		wantHeld(t, err, "k", lease.Grant().Owner) // says the engine
		if n := engine.sent().acquire; n != 2 {
			t.Errorf("%d acquires were sent, want 2: the gate is open", n)
		}
		pass(ttl - believed)
		release(t, acquire(t, l, "k"))
	})
}

// Waiters get their turn when the gate of an abandoned lease opens.
func TestWaiterAfterAbandon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, memlock.New(), lock.Config{TTL: ttl})
		acquire(t, l, "k").Abandon()
		start := time.Now()
		lease, err := l.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited < ttl || waited > ttl+50*time.Millisecond {
			t.Errorf("waited %v, want until the lock expired", waited)
		}
		release(t, lease)
	})
}

// A renewal that was on its way when the lease was released or abandoned brings
// it back to nobody.
func TestRenewalOvertaken(t *testing.T) {
	for name, leave := range map[string]func(*lock.Lease){
		"by Release": func(l *lock.Lease) { _ = l.Release(context.Background()) },
		"by Abandon": (*lock.Lease).Abandon,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				l := newLocker(t, engine, lock.Config{TTL: ttl})
				lease := acquire(t, l, "k")
				deadline := lease.Grant().Deadline
				engine.onRenew(func(ctx context.Context, hs []lockengine.Request, ttl time.Duration) []error {
					<-time.After(500 * time.Millisecond)
					return sameVerdict(hs, nil)
				})
				pass(renewed)
				leave(lease)
				pass(time.Second)
				wantIs(t, lease.Err(), lockengine.ErrNotHeld)
				if !lease.Grant().Deadline.Equal(deadline) {
					t.Error("the deadline was moved")
				}
				pass(ttl)
				release(t, acquire(t, l, "k"))
			})
		})
	}
}

// A renewal that succeeds after Err has looked at the deadline keeps the lease.
func TestErrKeepsLeaseRenewedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		lease := acquire(t, newLocker(t, engine, lock.Config{TTL: ttl}), "k")
		pass(ttl / 2)
		if lease.Outlived() {
			t.Error("a lease that was renewed has outlived its deadline")
		}
		wantAlive(t, lease, true)

		engine.onRenew(renewDown)
		pass(ttl)
		if !lease.Outlived() {
			t.Error("a lease that was not renewed has not outlived its deadline")
		}
		wantAlive(t, lease, false)
	})
}
