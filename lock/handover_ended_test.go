package lock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

// A caller whose deadline passes while the lock is on its way to it does not
// get it, and it is lost to nobody.
func TestHandOverToEndedCaller(t *testing.T) {
	for name, tt := range map[string]struct {
		window time.Duration
		next   bool // somebody else waits
		want   requests
	}{
		"passes it on":        {0, true, requests{acquire: 1, release: 1}},
		"releases it":         {0, false, requests{acquire: 1, release: 1}},
		"after the window":    {1, true, requests{acquire: 2, release: 2}},
		"without a hand-over": {-1, true, requests{acquire: 2, release: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				l := newLocker(t, engine, lock.Config{HandOver: tt.window})
				first := acquire(t, l, "k")
				ended := waitWith(lateContext{t.Context(), time.Now().Add(time.Millisecond)}, t, l, "k")
				var next *waiter
				if tt.next {
					next = wait(t, l, "k")
				}
				pass(time.Millisecond)
				release(t, first)
				err := ended.failed(t)
				wantIs(t, err, context.DeadlineExceeded)
				if _, ok := errors.AsType[*lockengine.HeldError](err); !ok {
					t.Errorf("error is %v, want a *HeldError", err)
				}
				if tt.next {
					release(t, next.got(t))
				}
				synctest.Wait()
				engine.wantSent(t, tt.want)
				engine.wantFree(t, "k")
				release(t, acquire(t, l, "k"))
			})
		})
	}
}

// TestHandOverOfALostLock: the caller before has worked without a lock, and the one that
// finds it out has stopped waiting. It is told.
func TestHandOverOfALostLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		first := acquire(t, l, "k")
		ended := waitWith(lateContext{t.Context(), time.Now().Add(time.Millisecond)}, t, l, "k")
		engine.Forget("k")
		pass(time.Millisecond)
		release(t, first)
		lease := ended.got(t)
		wantIs(t, lease.Err(), lock.ErrLost)
		wantIs(t, context.Cause(lease.Context()), lock.ErrLost)
		wantIs(t, lease.Release(t.Context()), lock.ErrLost)
		release(t, acquire(t, l, "k"))
	})
}

// The loss, the release and the waiter meet. Whatever comes first, the waiter
// gets a lock that the engine knows of, and nothing is left in the engine.
func TestLostWhileHandedOver(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaults()
			l := newLocker(t, engine, lock.Config{TTL: ttl})
			first := acquire(t, l, "k")
			w := wait(t, l, "k")
			engine.onRenew(func(_ context.Context, hs []lockengine.Request, _ time.Duration) []error {
				<-time.After(time.Millisecond)
				return sameVerdict(hs, lockengine.ErrNotHeld) // a lie: it is there still
			})
			<-time.After(renewed + time.Millisecond)
			if err := first.Release(t.Context()); err != nil {
				wantIs(t, err, lock.ErrLost)
			}
			pass(time.Second)
			second := w.got(t)
			if second.Err() == nil {
				if holder, _ := engine.Inspect(t.Context(), "k"); holder.Owner != second.Grant().Owner {
					t.Errorf("%s has the lock, the engine says %s", second.Grant().Owner, holder.Owner)
				}
			}
			if err := second.Release(t.Context()); err != nil {
				wantIs(t, err, lock.ErrLost)
			}
			pass(time.Second)
			engine.wantFree(t, "k")
		})
	}
}

// A lock that could not be renewed is not handed on: the next caller had better
// learn from the engine.
func TestNoHandOverAfterFailedRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		first := acquire(t, l, "k")
		engine.onRenew(renewDown)
		pass(renewed)
		engine.onRenew(nil)
		pass(renewed)
		wantAlive(t, first, true)
		w := wait(t, l, "k")
		release(t, first)
		if w.got(t).Grant().Owner == first.Grant().Owner {
			t.Error("the lock was handed over")
		}
	})
}

func TestOldHolderHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		first := acquire(t, l, "k")
		w := wait(t, l, "k")
		release(t, first)
		second := w.got(t)

		err := first.Release(t.Context())
		if !errors.Is(err, lockengine.ErrNotHeld) || errors.Is(err, lock.ErrLost) {
			t.Errorf("second Release: %v, want ErrNotHeld and not ErrLost", err)
		}
		first.Abandon()
		wantIs(t, first.Err(), lockengine.ErrNotHeld)
		synctest.Wait()
		wantAlive(t, second, true)
		engine.wantSent(t, requests{acquire: 1})
		_, err = l.TryAcquire(context.WithoutCancel(first.Context()), "k")
		wantHeld(t, err, "k", second.Grant().Owner) // its context is no way in
		release(t, second)
		engine.wantFree(t, "k")
	})
}

func TestRenewalAcrossHandOvers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		first := acquire(t, l, "k")
		w := wait(t, l, "k")
		pass(renewed - time.Second)
		release(t, first)
		second := w.got(t)
		pass(time.Second)
		if n := engine.sent().renew; n != 1 {
			t.Errorf("%d renewals were sent, want the one that is due since the grant", n)
		}
		pass(3 * ttl)
		wantAlive(t, second, true)
		if n := engine.sent().renew; n != 10 {
			t.Errorf("%d renewals were sent, want one every %v", n, renewed)
		}
	})
}

// A loss is told to the present holder. Those before it are done, and may be
// the ones who were without a lock: the tokens say who they are.
func TestLossAfterHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		first := acquire(t, l, "k")
		w := wait(t, l, "k")
		engine.Forget("k")
		release(t, first)
		second := w.got(t)
		pass(renewed)
		wantAlive(t, second, false)
		if second.Grant().FirstToken != first.Grant().Token || second.Grant().Token != first.Grant().Token+1 {
			t.Errorf("tokens %d to %d, want them from %d", second.Grant().FirstToken, second.Grant().Token, first.Grant().Token)
		}
		if cause := context.Cause(first.Context()); !errors.Is(cause, lockengine.ErrNotHeld) || errors.Is(cause, lock.ErrLost) {
			t.Errorf("the first holder's context ended with %v, want ErrNotHeld", cause)
		}
		wantIs(t, first.Release(t.Context()), lockengine.ErrNotHeld)
		wantIs(t, second.Release(t.Context()), lock.ErrLost)
		release(t, acquire(t, l, "k"))
	})
}

// Callers in the queue learn that the Locker is being closed; who has the lock
// by then releases it for good.
func TestCloseWithQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		first := acquire(t, l, "k")
		w2, w3 := wait(t, l, "k"), wait(t, l, "k")
		release(t, first)
		second := w2.got(t)
		closed := make(chan error, 1)
		go func() { closed <- l.Close(t.Context()) }()
		wantIs(t, w3.failed(t), lock.ErrClosed)
		wantAlive(t, second, true)
		release(t, second)
		if err := <-closed; err != nil {
			t.Errorf("Close: %v", err)
		}
		engine.wantFree(t, "k")
	})
}

// Close gives up while the lock goes from one to the next. If neither has it in
// the end, nor has the engine.
func TestCloseMeetsHandOver(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the waiter is not quicker than Close
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaults()
			l, err := lock.New(engine, lock.Config{})
			if err != nil {
				t.Fatal(err)
			}
			first := acquire(t, l, "k")
			w := wait(t, l, "k")
			release(t, first)
			wantIs(t, l.Close(endedContext()), context.Canceled)
			if lease, err := w.result(); lease == nil {
				wantIs(t, err, lock.ErrClosed)
				engine.wantFree(t, "k")
			}
		})
	}
}

// Several Lockers, several keys, callers who give up: in the end nobody holds
// anything, and in between there is one at a time.
func TestHandOversOfImpatientCallers(t *testing.T) {
	engine := memlock.New()
	s := newStress(t, engine, 3)
	s.patience = time.Millisecond
	s.run(8, 100)
}

// At the deadline a lock is neither handed over nor nested, whether or not the
// watchdog has run. With many leases some are asked before it has.
func TestNotSharedAtDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lockers []*lock.Locker
		var leases []*lock.Lease
		var waiters []*waiter
		for range 200 {
			engine := newFaults()
			engine.onRenew(renewHangs)
			l := newLocker(t, engine, lock.Config{TTL: ttl, RequestTimeout: ttl})
			lockers, leases = append(lockers, l), append(leases, acquire(t, l, "k"))
			waiters = append(waiters, wait(t, l, "k"))
		}
		<-time.After(time.Until(leases[0].Grant().Deadline))
		for i, lease := range leases {
			if i%2 == 0 {
				if _, err := lockers[i].TryAcquire(context.WithoutCancel(lease.Context()), "k"); err == nil {
					t.Fatal("a lock was nested at its deadline")
				}
			}
			if err := lease.Release(t.Context()); err != nil {
				wantIs(t, err, lock.ErrLost)
			}
		}
		pass(time.Second)
		for i, w := range waiters {
			if w.got(t).Grant().Owner == leases[i].Grant().Owner {
				t.Fatal("a lock was handed over at its deadline")
			}
		}
	})
}
