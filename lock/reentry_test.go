package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// nest takes the lock of lease once more.
func nest(tb testing.TB, l *lock.Locker, lease *lock.Lease) *lock.Lease {
	tb.Helper()
	inner, err := l.TryAcquire(lease.Context(), lease.Grant().Key)
	if err != nil {
		tb.Fatalf("nested TryAcquire: %v", err)
	}
	return inner
}

func TestNestedLease(t *testing.T) {
	for call, get := range map[string]func(*lock.Locker, context.Context) (*lock.Lease, error){
		"Acquire":    func(l *lock.Locker, ctx context.Context) (*lock.Lease, error) { return l.Acquire(ctx, "k") },
		"TryAcquire": func(l *lock.Locker, ctx context.Context) (*lock.Lease, error) { return l.TryAcquire(ctx, "k") },
	} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				l := newLocker(t, engine, lock.Config{})
				outer := acquire(t, l, "k")
				pass(time.Second)
				other, err := l.TryAcquire(outer.Context(), "another key") // in the same context
				if err != nil {
					t.Fatal(err)
				}
				inner, err := get(l, other.Context())
				if err != nil {
					t.Fatal(err)
				}
				if inner.Grant().Key != "k" || inner.Grant().Owner != outer.Grant().Owner || inner.Grant().Token != outer.Grant().Token {
					t.Errorf("key %q, owner %s, token %d, want those of the outer lease", inner.Grant().Key, inner.Grant().Owner, inner.Grant().Token)
				}
				if age := inner.Grant().AcquiredAt.Sub(outer.Grant().AcquiredAt); age != time.Second {
					t.Errorf("acquired %v after the outer one", age)
				}
				deepest, err := get(l, inner.Context())
				if err != nil {
					t.Fatal(err)
				}
				engine.wantSent(t, requests{acquire: 2})
				release(t, deepest)
				release(t, inner)
				engine.wantSent(t, requests{acquire: 2})
				wantAlive(t, outer, true)
				release(t, outer)
				engine.wantSent(t, requests{acquire: 2, release: 1})
				engine.wantFree(t, "k")
			})
		})
	}
}

// The last Release ends the hold, whichever lease it comes from.
func TestNestedReleases(t *testing.T) {
	for name, order := range map[string][]int{
		"inside out": {2, 1, 0},
		"outside in": {0, 1, 2},
		"mixed":      {1, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				l := newLocker(t, engine, lock.Config{TTL: ttl})
				outer := acquire(t, l, "k")
				inner := nest(t, l, outer)
				leases := []*lock.Lease{outer, inner, nest(t, l, inner)}
				for i, n := range order {
					lease := leases[n]
					wantAlive(t, lease, true)
					release(t, lease)
					for range 2 {
						if err := lease.Release(t.Context()); !errors.Is(err, lockengine.ErrNotHeld) || errors.Is(err, lock.ErrLost) {
							t.Errorf("Release of a released lease: %v, want ErrNotHeld", err)
						}
					}
					lease.Abandon() // it is not his any more
					wantIs(t, lease.Err(), lockengine.ErrNotHeld)
					last := i == len(order)-1
					if ended := outer.Context().Err() != nil; ended != last {
						t.Errorf("after %d releases the context has ended: %t", i+1, ended)
					}
					pass(renewed)
				}
				engine.wantSent(t, requests{acquire: 1, renew: 2, release: 1})
				engine.wantFree(t, "k")
			})
		})
	}
}

func TestNestedLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		outer := acquire(t, l, "k")
		inner, done := nest(t, l, outer), nest(t, l, outer)
		release(t, done)
		engine.Forget("k")
		pass(renewed)
		wantAlive(t, inner, false)
		wantAlive(t, outer, false)

		_, err := l.TryAcquire(outer.Context(), "k")
		wantIs(t, err, context.Canceled)
		next, err := l.TryAcquire(context.WithoutCancel(outer.Context()), "k")
		if err != nil {
			t.Fatalf("TryAcquire with the context of a lost lease: %v", err)
		}
		if next.Grant().Owner == outer.Grant().Owner {
			t.Error("a lost lock was nested")
		}
		wantIs(t, inner.Release(t.Context()), lock.ErrLost)
		wantIs(t, outer.Release(t.Context()), lock.ErrLost)
		wantIs(t, outer.Release(t.Context()), lock.ErrLost)
		synctest.Wait()
		wantAlive(t, next, true)
		engine.wantSent(t, requests{acquire: 2, renew: 1, release: 1})
		release(t, nest(t, l, next))
		release(t, next)
	})
}

// The context of a lease that was released shares no lock, though a nested lease keeps it.
func TestReleasedLeaseSharesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, newFaults(), lock.Config{})
		outer := acquire(t, l, "k")
		inner := nest(t, l, outer)
		release(t, outer)
		if l.Holds(outer.Context(), "k") {
			t.Error("the context of a released lease has a living one")
		}
		_, err := l.TryAcquire(outer.Context(), "k")
		wantHeld(t, err, "k", inner.Grant().Owner)
		release(t, nest(t, l, inner))
		wantAlive(t, inner, true)
		release(t, inner)
	})
}

func TestNestedOnlyInSameLockAndLocker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l, other := newLocker(t, engine, lock.Config{}), newLocker(t, engine, lock.Config{})
		lease := acquire(t, l, "k")
		_, err := other.TryAcquire(lease.Context(), "k")
		wantHeld(t, err, "k", lease.Grant().Owner)

		second, err := l.TryAcquire(lease.Context(), "another key")
		if err != nil {
			t.Fatal(err)
		}
		if second.Grant().Owner == lease.Grant().Owner {
			t.Error("two keys are one lock")
		}
		release(t, lease)
		wantAlive(t, second, true)
		again, err := l.TryAcquire(second.Context(), "k")
		if err != nil {
			t.Fatalf("TryAcquire of a lock that has been released: %v", err)
		}
		if again.Grant().Owner == lease.Grant().Owner {
			t.Error("a released lock was nested")
		}
	})
}

// Who waits gets the lock when the last nested lease is released, and its own
// nesting.
func TestNestedLeaseAndWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		outer := acquire(t, l, "k")
		w := wait(t, l, "k")
		inner := nest(t, l, outer) // does not queue
		release(t, outer)
		w.wantWaiting(t)
		release(t, inner)
		next := w.got(t)
		release(t, nest(t, l, next))
		wantAlive(t, next, true)
		for _, old := range []*lock.Lease{outer, inner} {
			wantIs(t, old.Release(t.Context()), lockengine.ErrNotHeld)
		}
		wantAlive(t, next, true)
		release(t, next)
		engine.wantSent(t, requests{acquire: 1, release: 1})
	})
}

// Abandon is the end of all who share the lock.
func TestAbandonNested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		outer := acquire(t, l, "k")
		nest(t, l, outer).Abandon()
		wantIs(t, outer.Err(), lockengine.ErrNotHeld)
		wantIs(t, outer.Release(t.Context()), lockengine.ErrNotHeld)
		pass(believed - 1)
		_, err := l.TryAcquire(t.Context(), "k")
		wantHeld(t, err, "k", outer.Grant().Owner)
		engine.wantSent(t, requests{acquire: 1})
	})
}
