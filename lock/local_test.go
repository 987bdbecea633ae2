package lock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// TestLocal: without the engine, the callers of one process still exclude each
// other, and nothing is sent.
func TestLocal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{MaxHold: -1})
		lease, err := l.TryAcquire(t.Context(), "k", lock.Local())
		if err != nil {
			t.Fatal(err)
		}
		if lease.Grant().Owner != "" || lease.Grant().Key != "k" {
			t.Errorf("lease of %q on %q, want nobody's on k", lease.Grant().Owner, lease.Grant().Key)
		}
		_, err = l.TryAcquire(t.Context(), "k")
		wantHeld(t, err, "k", "")
		_, err = l.TryAcquire(t.Context(), "k", lock.Local())
		wantHeld(t, err, "k", "")
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = l.Acquire(short, "k", lock.Local())
		wantHeld(t, err, "k", "")
		wantIs(t, err, context.DeadlineExceeded)

		got := make(chan *lock.Lease)
		go func() {
			next, _ := l.Acquire(t.Context(), "k", lock.Local())
			got <- next
		}()
		pass(time.Hour)
		wantAlive(t, lease, true)
		release(t, lease)
		wantIs(t, lease.Release(t.Context()), lockengine.ErrNotHeld)
		next := <-got
		if n := engine.sent(); n.acquire+n.renew+n.release != 0 {
			t.Errorf("the engine was asked: %+v", n)
		}
		release(t, next)
		release(t, acquire(t, l, "k")) // a real one
	})
}

// TestLocalNested: who has the key already does not wait for himself.
func TestLocalNested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, newFaults(), lock.Config{})
		for _, opts := range [][]lock.AcquireOption{{lock.Local()}, nil} {
			lease, err := l.TryAcquire(t.Context(), "k", opts...)
			wantIs(t, err, nil)
			ctx, cancel := context.WithTimeout(lease.Context(), time.Second)
			first, err := l.Acquire(ctx, "k", lock.Local())
			wantIs(t, err, nil)
			second, err := l.TryAcquire(ctx, "k", lock.Local())
			wantIs(t, err, nil)
			if first.Grant().Owner != lease.Grant().Owner || second.Grant().Owner != lease.Grant().Owner {
				t.Errorf("owners %q and %q, want %q", first.Grant().Owner, second.Grant().Owner, lease.Grant().Owner)
			}
			cancel()
			release(t, first)
			release(t, second)
			wantAlive(t, lease, true)
			release(t, lease)
		}
	})
}

func TestLocalIsNotHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		lease, err := l.Acquire(t.Context(), "k", lock.Local())
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan *lock.Lease)
		go func() {
			next, _ := l.Acquire(t.Context(), "k")
			got <- next
		}()
		synctest.Wait()
		release(t, lease)
		next := <-got
		if next.Grant().Owner == "" || engine.sent().acquire != 1 {
			t.Errorf("owner is %q after %d acquires, want one that the engine knows", next.Grant().Owner, engine.sent().acquire)
		}
		release(t, next)
	})
}

func TestLocalAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, newFaults(), lock.Config{TTL: 10 * time.Second})
		lease, err := l.Acquire(t.Context(), "k", lock.Local())
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		lease.Abandon()
		pass(8 * time.Second)
		_, err = l.TryAcquire(t.Context(), "k")
		wantHeld(t, err, "k", "")
		pass(2 * time.Second)
		release(t, acquire(t, l, "k"))
	})
}

func TestLocalWhenClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		lease, err := l.Acquire(t.Context(), "k", lock.Local())
		if err != nil {
			t.Fatal(err)
		}
		wantIs(t, l.Close(endedContext()), context.Canceled)
		wantAlive(t, lease, false)
		wantIs(t, lease.Release(t.Context()), lock.ErrLost)
		if n := engine.sent().release; n != 0 {
			t.Errorf("%d releases were sent for what the engine never gave", n)
		}
		_, err = l.Acquire(t.Context(), "k", lock.Local())
		wantIs(t, err, lock.ErrClosed)
	})
}

// A turn that meets the end of the wait is not taken.
func TestLocalTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, newFaults(), lock.Config{})
		lease, err := l.Acquire(t.Context(), "k", lock.Local())
		if err != nil {
			t.Fatal(err)
		}
		late := make(chan error, 1)
		go func() {
			_, err := l.Acquire(lateContext{t.Context(), time.Now().Add(time.Millisecond)}, "k", lock.Local())
			late <- err
		}()
		pass(time.Millisecond)
		release(t, lease)
		wantIs(t, <-late, context.DeadlineExceeded)
		release(t, acquire(t, l, "k"))
	})
}
