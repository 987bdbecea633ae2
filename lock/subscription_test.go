package lock_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// One subscription serves all who wait in this process, one after the other.
func TestAlarmIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newBells()
		holder := elsewhere(t, engine)
		l := newLocker(t, engine, lock.Config{HandOver: -1})
		w1, w2, w3 := wait(t, l, "k"), wait(t, l, "k"), wait(t, l, "k")
		w1.cancel() // the head gives up, the next one listens on
		wantIs(t, w1.failed(t), context.Canceled)
		pass(time.Minute)
		release(t, holder)
		second := w2.got(t)
		w3.wantWaiting(t)
		release(t, second)
		pass(5 * time.Millisecond)
		third := w3.got(t)
		if begun, ended := engine.watches(); begun != 1 || ended != 0 {
			t.Errorf("listened %d times, stopped %d times, want 1, 0", begun, ended)
		}
		release(t, third)
		if begun, ended := engine.watches(); begun != 1 || ended != 1 {
			t.Errorf("listened %d times, stopped %d times, want 1, 1", begun, ended)
		}
	})
}

// Whatever ends the last wait, nobody listens any more.
func TestAlarmIsStopped(t *testing.T) {
	for want, end := range map[error]func(*lock.Locker, *waiter){
		context.Canceled: func(_ *lock.Locker, w *waiter) { w.cancel() },
		lock.ErrClosed:   func(l *lock.Locker, _ *waiter) { _ = l.Close(context.Background()) },
	} {
		t.Run(want.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newBells()
				elsewhere(t, engine)
				l := newLocker(t, engine, lock.Config{})
				w := wait(t, l, "k")
				end(l, w)
				wantIs(t, w.failed(t), want)
				if begun, ended := engine.watches(); begun != 1 || ended != 1 {
					t.Errorf("listened %d times, stopped %d times, want 1, 1", begun, ended)
				}
			})
		})
	}
}

// With nobody listening there is nobody to wait for.
func TestNoYieldWithoutAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newBells()
		l := newLocker(t, engine, lock.Config{HandOver: -1})
		lease := acquire(t, l, "k")
		w := wait(t, l, "k")
		release(t, lease)
		w.got(t)
	})
}

// The engine's failure to listen is not the caller's business.
func TestWatchErrorIsNotReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newBells()
		elsewhere(t, engine)
		engine.onWatch(func(context.Context, string) error { return errDown })
		w := wait(t, newLocker(t, engine, lock.Config{}), "k")
		pass(time.Second)
		w.cancel()
		err := w.failed(t)
		wantIs(t, err, context.Canceled)
		if errors.Is(err, errDown) {
			t.Errorf("error is %v", err)
		}
	})
}

// A holder without an end is polled no faster than any other.
func TestWaitForHolderWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newBells()
		engine.onAcquire(func(_ context.Context, h lockengine.Request, _ time.Duration) (lockengine.Grant, error) {
			return lockengine.Grant{}, &lockengine.HeldError{Key: h.Key, Holder: lockengine.Holder{Owner: "java:1", TTL: math.MaxInt64}}
		})
		l := newLocker(t, engine, lock.Config{})
		w := wait(t, l, "k")
		pass(10 * time.Second)
		w.wantWaiting(t)
		if n := engine.sent().acquire; n > 25 {
			t.Errorf("%d acquires were sent in 10 s, want about one a second", n)
		}
		w.cancel()
	})
}
