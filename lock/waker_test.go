package lock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// elsewhere has another process hold k.
func elsewhere(t *testing.T, engine lockengine.Engine) *lock.Lease {
	t.Helper()
	return acquire(t, newLocker(t, engine, lock.Config{}), "k")
}

func TestWakeIsFollowedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newBells()
		holder := elsewhere(t, engine)
		w := wait(t, newLocker(t, engine, lock.Config{}), "k")
		if n := engine.sent().acquire; n != 3 {
			t.Errorf("%d acquires were sent, want the holder's, one before and one after listening", n)
		}
		pass(100 * time.Millisecond)
		release(t, holder)
		release(t, w.got(t))
		if n := engine.sent().acquire; n != 4 {
			t.Errorf("%d acquires were sent, want 4", n)
		}
		if begun, ended := engine.watches(); begun != 1 || ended != 1 {
			t.Errorf("listened %d times, stopped %d times, want 1, 1", begun, ended)
		}
	})
}

// A lock that is free is not listened for, and TryAcquire does not listen.
func TestNoWaitNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newBells()
		l := newLocker(t, engine, lock.Config{})
		lease, err := l.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		_, err = newLocker(t, engine, lock.Config{}).TryAcquire(t.Context(), "k")
		wantHeld(t, err, "k", lease.Grant().Owner)
		w := wait(t, l, "k") // in memory
		release(t, lease)
		release(t, w.got(t))
		if begun, _ := engine.watches(); begun != 0 {
			t.Errorf("listened %d times", begun)
		}
	})
}

// A release between the refusal and the subscription rings for nobody.
func TestReleaseBeforeSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newBells()
		holder := elsewhere(t, engine)
		engine.onWatch(func(context.Context, string) error {
			release(t, holder)
			return nil
		})
		wait(t, newLocker(t, engine, lock.Config{}), "k").got(t)
	})
}

func TestWatchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newBells()
		holder := elsewhere(t, engine)
		engine.onWatch(func(context.Context, string) error { return errDown })
		w := wait(t, newLocker(t, engine, lock.Config{}), "k")
		n := engine.sent().acquire
		pass(10 * time.Second)
		if n = engine.sent().acquire - n; n < 200 || n > 1000 {
			t.Errorf("polled %d times in 10 s, want once in 10 to 50 ms", n)
		}
		release(t, holder)
		w.wantWaiting(t)
		pass(50 * time.Millisecond)
		w.got(t)
	})
}

// unanswered is a subscription that the engine does not answer.
func unanswered(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// While the subscription gets no answer, the engine is asked once a second.
func TestWatchIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newBells()
		holder := elsewhere(t, engine)
		engine.onWatch(unanswered)
		w := wait(t, newLocker(t, engine, lock.Config{}), "k")
		n := engine.sent().acquire
		pass(100 * time.Second)
		if n = engine.sent().acquire - n; n < 90 || n > 100 {
			t.Errorf("polled %d times in 100 s, want once in 1000 to 1050 ms", n)
		}
		release(t, holder)
		pass(1050 * time.Millisecond)
		w.got(t)
	})
}

// A subscription that gets no answer takes no longer than the ttl.
func TestWatchIsSilentForAShortTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newBells()
		holder := elsewhere(t, engine)
		engine.onWatch(unanswered)
		w := wait(t, newLocker(t, engine, lock.Config{TTL: 50 * time.Millisecond}), "k")
		release(t, holder)
		pass(100 * time.Millisecond)
		w.got(t)
	})
}

// The engine can listen again: then it is not polled any more.
func TestWatchWorksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newBells()
		holder := elsewhere(t, engine)
		engine.onWatch(func(context.Context, string) error { return errDown })
		w := wait(t, newLocker(t, engine, lock.Config{}), "k")
		pass(time.Second)
		engine.onWatch(nil)
		pass(50 * time.Millisecond)
		n := engine.sent().acquire
		pass(10 * time.Second)
		if n = engine.sent().acquire - n; n > 20 {
			t.Errorf("polled %d times in 10 s", n)
		}
		release(t, holder)
		w.got(t)
	})
}

func TestContextEndsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newBells()
		holder := elsewhere(t, engine)
		engine.onWatch(unanswered)
		w := wait(t, newLocker(t, engine, lock.Config{}), "k")
		w.wantWaiting(t)
		w.cancel()
		err := w.failed(t)
		wantHeld(t, err, "k", holder.Grant().Owner)
		wantIs(t, err, context.Canceled)
	})
}

// Messages may get lost: the engine is asked at least once a second.
func TestWakeIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newBells()
		holder := elsewhere(t, engine)
		w := wait(t, newLocker(t, engine, lock.Config{}), "k")
		n := engine.sent().acquire
		pass(100 * time.Second)
		if n = engine.sent().acquire - n; n < 99 || n > 200 {
			t.Errorf("polled %d times in 100 s, want once in 500 to 1000 ms", n)
		}
		engine.setMute(true)
		release(t, holder)
		w.wantWaiting(t)
		pass(time.Second)
		w.got(t)
	})
}

// Nobody rings for a holder that has died. Its lock expires, and the waiter
// knows when.
func TestDeadHolderIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const left = 300 * time.Millisecond
		engine := newBells()
		if _, err := engine.Acquire(t.Context(), lockengine.Request{Key: "k", Owner: "dead:1"}, left); err != nil {
			t.Fatal(err)
		}
		w := wait(t, newLocker(t, engine, lock.Config{}), "k")
		pass(left - 1)
		w.wantWaiting(t)
		pass(6 * time.Millisecond)
		w.got(t)
	})
}

// An engine that notifies of what an attempt has taken back does not make the waiter ask again at
// once: it would notify itself all the time.
func TestWaiterHeedsNoNotificationOfItsOwn(t *testing.T) {
	for name, answer := range map[string]error{
		"held in part": &lockengine.HeldError{Key: "k", Partial: true},
		"not reached":  lockengine.ErrNotSent,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newBells()
				acquire(t, newLocker(t, engine, lock.Config{TTL: time.Hour}), "k")
				w := wait(t, newLocker(t, engine, lock.Config{TTL: time.Hour}), "k")
				pass(time.Second) // it has subscribed
				engine.onAcquire(func(context.Context, lockengine.Request, time.Duration) (lockengine.Grant, error) {
					time.AfterFunc(time.Millisecond, func() { engine.ring("k") })
					return lockengine.Grant{}, answer
				})
				pass(time.Second)
				before := engine.sent().acquire
				pass(10 * time.Second)
				if n := engine.sent().acquire - before; n < 100 || n > 1000 {
					t.Errorf("%d attempts in 10 s, want one each 10 to 50 ms", n)
				}
				w.cancel()
				_ = w.failed(t)
			})
		})
	}
}
