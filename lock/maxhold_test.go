package lock_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

const maxHold = 25 * time.Second

func TestMaxHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl, MaxHold: maxHold})
		lease := acquire(t, l, "k")
		w := wait(t, l, "k")
		pass(maxHold - 1)
		wantAlive(t, lease, true)
		pass(1)
		wantAlive(t, lease, false)
		wantIs(t, lease.Err(), lock.ErrMaxHold)
		if text := lease.Err().Error(); !strings.Contains(text, maxHold.String()) {
			t.Errorf("error %q does not name the limit", text)
		}
		if n := engine.sent().acquire; n != 2 {
			t.Errorf("%d acquires were sent, want 2: the gate is open", n)
		}
		// It was renewed twice, the last time after 20 s, and then no more.
		pass(2*renewed + ttl - maxHold - time.Millisecond)
		w.wantWaiting(t) // the holder may be at work still
		pass(60 * time.Millisecond)
		next := w.got(t)
		if n := engine.sent().renew; n != 2 {
			t.Errorf("%d renewals were sent, want 2", n)
		}
		wantIs(t, lease.Release(t.Context()), lock.ErrMaxHold, lock.ErrLost)
		pass(time.Second)
		wantAlive(t, next, true)
	})
}

// A holder that gives in frees the lock before it expires.
func TestReleaseAfterMaxHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl, MaxHold: maxHold})
		lease := acquire(t, l, "k")
		pass(maxHold)
		wantIs(t, lease.Release(t.Context()), lock.ErrMaxHold)
		synctest.Wait()
		engine.wantFree(t, "k")
	})
}

func TestMaxHoldIsPerHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, newFaults(), lock.Config{TTL: ttl, MaxHold: maxHold})
		first := acquire(t, l, "k")
		w := wait(t, l, "k")
		pass(maxHold - time.Second)
		release(t, first)
		second := w.got(t)
		if second.Grant().Owner != first.Grant().Owner {
			t.Fatal("the lock was not handed over")
		}
		pass(maxHold - 1)
		wantAlive(t, second, true)
		pass(1)
		wantIs(t, second.Err(), lock.ErrMaxHold)
		if errors.Is(first.Err(), lock.ErrLost) {
			t.Errorf("the first holder's lease ended with %v", first.Err())
		}
	})
}

func TestMaxHoldOfNestedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, newFaults(), lock.Config{TTL: ttl, MaxHold: maxHold})
		outer := acquire(t, l, "k")
		pass(maxHold - time.Second)
		inner := nest(t, l, outer)
		pass(time.Second)
		wantIs(t, inner.Err(), lock.ErrMaxHold)
		wantIs(t, outer.Err(), lock.ErrMaxHold)
	})
}

// The limit does not open the gate of an abandoned lease.
func TestMaxHoldAndAbandon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl, MaxHold: maxHold})
		lease := acquire(t, l, "k")
		lease.Abandon()
		pass(believed - 1)
		_, err := l.TryAcquire(t.Context(), "k")
		wantHeld(t, err, "k", lease.Grant().Owner)
		engine.wantSent(t, requests{acquire: 1})
		wantIs(t, lease.Err(), lockengine.ErrNotHeld)
	})
}

// Who is handed a lock in the last moment of its holder has a time of his own.
func TestHandOverAtMaxHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, newFaults(), lock.Config{TTL: ttl, MaxHold: maxHold})
		for range 2000 {
			first := acquire(t, l, "k")
			w := wait(t, l, "k")
			<-time.After(maxHold) // and the watchdog wakes in the same moment
			err := first.Release(t.Context())
			if err != nil {
				pass(time.Second) // the engine is asked
			}
			second := w.got(t)
			wantAlive(t, second, true)
			release(t, second)
		}
	})
}

// A limit that no clock reaches is none.
func TestGreatestMaxHoldIsNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, newFaults(), lock.Config{TTL: ttl, HandOver: math.MaxInt64, MaxHold: math.MaxInt64})
		lease := acquire(t, l, "k")
		w := wait(t, l, "k")
		pass(time.Hour)
		wantAlive(t, lease, true)
		release(t, lease)
		wantAlive(t, w.got(t), true)
	})
}

// A holder that hangs does not keep a key for ever, with or without the engine,
// even if nobody thought of a limit.
func TestMaxHoldHasADefault(t *testing.T) {
	for name, get := range map[string]func(*lock.Locker, context.Context) (*lock.Lease, error){
		"lock": func(l *lock.Locker, ctx context.Context) (*lock.Lease, error) { return l.Acquire(ctx, "k") },
		"local": func(l *lock.Locker, ctx context.Context) (*lock.Lease, error) {
			return l.Acquire(ctx, "k", lock.Local())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLocker(t, newFaults(), lock.Config{TTL: ttl})
				lease, err := get(l, t.Context())
				wantIs(t, err, nil)
				pass(lock.DefaultMaxHold - 1)
				wantAlive(t, lease, true)
				pass(1)
				wantIs(t, lease.Err(), lock.ErrMaxHold)
				ctx, cancel := context.WithTimeout(t.Context(), ttl)
				defer cancel()
				next, err := get(l, ctx)
				if err != nil {
					t.Fatalf("the next caller, a ttl later: %v", err)
				}
				release(t, next)
				wantIs(t, l.Close(t.Context()), nil)
			})
		})
	}
}

// A local lease leaves nothing that has to expire.
func TestMaxHoldOfLocalLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl, MaxHold: maxHold})
		lease, err := l.TryAcquire(t.Context(), "k", lock.Local())
		wantIs(t, err, nil)
		w := wait(t, l, "k")
		pass(maxHold - 1)
		w.wantWaiting(t)
		pass(1)
		release(t, w.got(t))
		wantIs(t, context.Cause(lease.Context()), lock.ErrMaxHold)
		wantIs(t, lease.Release(t.Context()), lock.ErrMaxHold)
		engine.wantSent(t, requests{acquire: 1, release: 1})
	})
}

func TestNoMaxHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, newFaults(), lock.Config{TTL: ttl, MaxHold: -1})
		lease := acquire(t, l, "k")
		pass(24 * time.Hour)
		wantAlive(t, lease, true)
		release(t, lease)
	})
}
