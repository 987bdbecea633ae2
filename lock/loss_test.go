package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/internal/leaseend"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// TestLossTellsWhy: whoever explains a lost lock must know whether its holder
// tried to renew it.
func TestLossTellsWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		renew              renewFunc
		expired, unrenewed bool
	}{
		"renewals fail":        {renewDown, true, true},
		"nothing comes of one": {renewLate, true, false},
		"not ours any more":    {nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				lease := acquire(t, newLocker(t, engine, lock.Config{}), "k")
				engine.onRenew(tc.renew)
				if tc.renew == nil {
					engine.Forget("k")
				}
				pass(ttl)
				err := lease.Err()
				wantIs(t, err, lock.ErrLost)
				if got := errors.Is(err, leaseend.ErrExpired); got != tc.expired {
					t.Errorf("%v: expired %v, want %v", err, got, tc.expired)
				}
				if got := errors.Is(err, leaseend.ErrUnrenewed); got != tc.unrenewed {
					t.Errorf("%v: unrenewed %v, want %v", err, got, tc.unrenewed)
				}
				pass(3 * ttl)
			})
		})
	}
}

// TestRenewedAgain: a renewal that failed once is no reason later on.
func TestRenewedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		lease := acquire(t, newLocker(t, engine, lock.Config{}), "k")
		engine.onRenew(renewDown)
		pass(ttl/3 + time.Second)
		engine.onRenew(nil)
		pass(ttl)
		wantAlive(t, lease, true)
		engine.onRenew(renewLate)
		pass(ttl)
		wantIs(t, lease.Err(), leaseend.ErrExpired)
		if err := lease.Err(); errors.Is(err, leaseend.ErrUnrenewed) {
			t.Errorf("%v: the renewal that failed was long ago", err)
		}
		pass(3 * ttl)
	})
}

// renewLate does not answer before all is over.
func renewLate(_ context.Context, hs []lockengine.Request, _ time.Duration) []error {
	<-time.After(2 * ttl)
	return sameVerdict(hs, errDown)
}

var errWrongType = fmt.Errorf("%w: WRONGTYPE", lockengine.ErrUnusable)

// overwritten is what an engine says of a lock that something else was written over.
func overwritten(engine *faults) {
	engine.onRenew(func(_ context.Context, hs []lockengine.Request, _ time.Duration) []error {
		return sameVerdict(hs, errWrongType)
	})
	engine.onRelease(func(context.Context, lockengine.Request) error { return errWrongType })
}

// A key that was overwritten is a lock that is gone: its holder learns it at the
// next renewal, not at the deadline, and with the right cause.
func TestOverwrittenLockIsLostAtRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		lease := acquire(t, l, "k")
		overwritten(engine)
		pass(renewed)
		wantAlive(t, lease, false)
		err := lease.Err()
		if errors.Is(err, leaseend.ErrExpired) || !strings.Contains(fmt.Sprint(err), "WRONGTYPE") {
			t.Errorf("the lease ended with %v, want the engine's answer", err)
		}
		wantIs(t, lease.Release(t.Context()), lock.ErrLost)
	})
}

// The release is answered, so there is nothing to release again, or for Close to
// wait for.
func TestOverwrittenLockIsLostAtRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		lease := acquire(t, l, "k")
		overwritten(engine)
		wantIs(t, lease.Release(t.Context()), lock.ErrLost)
		start := time.Now()
		wantIs(t, l.Close(t.Context()), nil)
		if took := time.Since(start); took != 0 {
			t.Errorf("Close took %v", took)
		}
		engine.wantSent(t, requests{acquire: 1, release: 1})
	})
}

// TestContextEndsBeforeTheKeyIsFree: the next caller must not get the key while nothing
// has told the last one to stop.
func TestContextEndsBeforeTheKeyIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &lastLook{bells: newBells()}
		holder := elsewhere(t, engine)
		w := wait(t, newLocker(t, engine, lock.Config{}), "k")
		release(t, holder)
		lease := w.got(t)
		looked := false
		engine.look = func() { // nobody waits for the key, which is free from now on
			looked = true
			wantIs(t, context.Cause(lease.Context()), lock.ErrLost)
		}
		engine.onRenew(func(_ context.Context, hs []lockengine.Request, _ time.Duration) []error {
			return sameVerdict(hs, lockengine.ErrNotHeld)
		})
		pass(renewed)
		if !looked {
			t.Error("the key is not free")
		}
	})
}

// lastLook calls look when nobody of a Locker has a key any more, or waits for it.
type lastLook struct {
	*bells
	look func()
}

func (l *lastLook) Watch(ctx context.Context, key string, wake func()) (func(), error) {
	stop, err := l.bells.Watch(ctx, key, wake)
	return func() { l.look(); stop() }, err
}
