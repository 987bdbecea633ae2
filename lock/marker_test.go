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

const keep = time.Hour

func releaseMarked(tb testing.TB, lease *lock.Lease) {
	tb.Helper()
	if err := lease.ReleaseMarked(context.Background(), keep); err != nil {
		tb.Errorf("ReleaseMarked: %v", err)
	}
}

// waitMarked is wait for a caller that asks for the marker.
func waitMarked(t *testing.T, l *lock.Locker, key string) *waiter {
	t.Helper()
	return waitWith(t.Context(), t, l, key, lock.UnlessMarked())
}

func TestMarkedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l, other := newLocker(t, engine, lock.Config{}), newLocker(t, engine, lock.Config{})
		lease, err := l.Acquire(t.Context(), "k", lock.UnlessMarked())
		if err != nil {
			t.Fatal(err)
		}
		_, err = other.TryAcquire(t.Context(), "k", lock.UnlessMarked())
		wantHeld(t, err, "k", lease.Grant().Owner)
		releaseMarked(t, lease)
		for _, l := range []*lock.Locker{l, other} {
			_, err := l.Acquire(t.Context(), "k", lock.UnlessMarked())
			wantIs(t, err, lockengine.ErrMarked)
			_, err = l.TryAcquire(t.Context(), "k", lock.UnlessMarked())
			wantIs(t, err, lockengine.ErrMarked)
			release(t, acquire(t, l, "k"))
		}
		wantIs(t, lease.ReleaseMarked(t.Context(), keep), lockengine.ErrNotHeld)
		pass(keep)
		lease, err = l.TryAcquire(t.Context(), "k", lock.UnlessMarked())
		if err != nil {
			t.Fatalf("after the marker has expired: %v", err)
		}
		if err := lease.ReleaseMarked(t.Context(), 0); err != nil {
			t.Errorf("ReleaseMarked for no time: %v", err)
		}
		release(t, mustAcquireUnlessMarked(t, l, "k"))
	})
}

func mustAcquireUnlessMarked(t *testing.T, l *lock.Locker, key string) *lock.Lease {
	t.Helper()
	lease, err := l.TryAcquire(t.Context(), key, lock.UnlessMarked())
	if err != nil {
		t.Fatalf("TryAcquire: %v", err)
	}
	return lease
}

// Each of those who wait asks the engine; those who wait for the lock and not
// for the work get it.
func TestMarkedKeyWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{HandOver: time.Hour})
		lease := mustAcquireUnlessMarked(t, l, "k")
		queue := []*waiter{waitMarked(t, l, "k"), wait(t, l, "k"), waitMarked(t, l, "k"), wait(t, l, "k")}
		releaseMarked(t, lease)
		wantIs(t, queue[0].failed(t), lockengine.ErrMarked)
		second := queue[1].got(t)
		release(t, second)
		wantIs(t, queue[2].failed(t), lockengine.ErrMarked)
		release(t, queue[3].got(t))
		engine.wantFree(t, "k")
	})
}

// An engine that tells of a marker has answered, for those in line behind, too.
func TestMarkedKeyAfterASilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		engine.onAcquire(away(lockengine.ErrNoAnswer))
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		asking, behind := waitMarked(t, l, "k"), wait(t, l, "k")
		pass(ttl - time.Second)
		engine.onAcquire(func(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
			if r.UnlessMarked {
				<-time.After(2 * time.Second) // until behind has waited for a ttl
				engine.onAcquire(away(lockengine.ErrNoAnswer))
				return lockengine.Grant{}, lockengine.ErrMarked
			}
			return engine.Engine.Acquire(ctx, r, ttl)
		})
		pass(3 * time.Second)
		wantIs(t, asking.failed(t), lockengine.ErrMarked)
		behind.wantWaiting(t)
		engine.onAcquire(nil)
		pass(2 * time.Second)
		release(t, behind.got(t))
	})
}

// There is no hand-over in memory to callers who ask for the marker, nor from
// them, nor from a holder who marks the key.
func TestNoHandOverOfMarkers(t *testing.T) {
	plain := func(t *testing.T, l *lock.Locker) *lock.Lease { t.Helper(); return acquire(t, l, "k") }
	asking := func(t *testing.T, l *lock.Locker) *lock.Lease {
		t.Helper()
		return mustAcquireUnlessMarked(t, l, "k")
	}
	for name, tt := range map[string]struct {
		first  func(*testing.T, *lock.Locker) *lock.Lease
		wait   func(*testing.T, *lock.Locker, string) *waiter
		marked bool
		same   bool
	}{
		"neither asks":       {plain, wait, false, true},
		"the holder asked":   {asking, wait, false, false},
		"the waiter asks":    {plain, waitMarked, false, false},
		"the holder marks":   {plain, wait, true, false},
		"both of them asked": {asking, waitMarked, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLocker(t, newFaults(), lock.Config{HandOver: time.Hour})
				first := tt.first(t, l)
				w := tt.wait(t, l, "k")
				if tt.marked {
					releaseMarked(t, first)
				} else {
					release(t, first)
				}
				second := w.got(t)
				if same := second.Grant().Owner == first.Grant().Owner; same != tt.same {
					t.Errorf("handed over = %v, want %v", same, tt.same)
				}
				release(t, second)
			})
		})
	}
}

// A nested lease is on a lock that is held already, and does not end it.
func TestMarkerAndNestedLeases(t *testing.T) {
	engine := newFaults()
	l := newLocker(t, engine, lock.Config{})
	lease := acquire(t, l, "k")
	nested, err := l.Acquire(lease.Context(), "k", lock.UnlessMarked())
	if err != nil {
		t.Fatal(err)
	}
	releaseMarked(t, nested)
	release(t, lease)
	release(t, mustAcquireUnlessMarked(t, l, "k")) // as documented: not marked
}

// An engine that keeps no markers grants the lock: a marker is a hint.
func TestEngineWithoutMarkers(t *testing.T) {
	l := newLocker(t, yes{}, lock.Config{})
	releaseMarked(t, mustAcquireUnlessMarked(t, l, "k"))
	releaseMarked(t, mustAcquireUnlessMarked(t, l, "k"))
}

// odd is an engine that takes what is marked and can't free it again.
type odd struct{ *faults }

func (o odd) Acquire(ctx context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	if _, err := o.Engine.Acquire(ctx, h, ttl); err != nil {
		return lockengine.Grant{}, err
	}
	return lockengine.Grant{}, fmt.Errorf("%w: %w", lockengine.ErrMarked, lockengine.ErrNoAnswer)
}

func TestMarkedButTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, odd{engine}, lock.Config{})
		_, err := l.Acquire(t.Context(), "k", lock.UnlessMarked())
		wantIs(t, err, lockengine.ErrMarked)
		if errors.Is(err, lockengine.ErrNoAnswer) {
			t.Errorf("error %v tells the caller what is none of his business", err)
		}
		synctest.Wait()
		engine.wantFree(t, "k")
		engine.wantSent(t, requests{release: 1})
	})
}

// What is refused leaves nothing to release, and a wait goes on.
func TestRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		engine.onAcquire(func(context.Context, lockengine.Request, time.Duration) (lockengine.Grant, error) {
			return lockengine.Grant{}, lockengine.ErrRefused
		})
		_, err := l.TryAcquire(t.Context(), "k")
		wantIs(t, err, lockengine.ErrRefused)
		w := wait(t, l, "k")
		pass(time.Second)
		engine.onAcquire(nil)
		pass(time.Second)
		release(t, w.got(t))
		if n := engine.sent().release; n != 1 {
			t.Errorf("%d releases, want 1", n)
		}
	})
}

func TestOptionsDoNotAllocate(t *testing.T) {
	l := newLocker(t, yes{}, lock.Config{})
	cycle := func(opts ...lock.AcquireOption) func() {
		return func() {
			lease, err := l.TryAcquire(t.Context(), "k", opts...)
			if err != nil {
				t.Fatal(err)
			}
			release(t, lease)
		}
	}
	testing.AllocsPerRun(100, cycle()) // numbers below 100 are written without an allocation
	without, with := testing.AllocsPerRun(100, cycle()), testing.AllocsPerRun(100, cycle(lock.UnlessMarked()))
	if with != without {
		t.Errorf("%v allocations with options, %v without", with, without)
	}
}
