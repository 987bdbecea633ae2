package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// leaveGhost has l leave a hold on k in the engine that it does not know the
// fate of.
func leaveGhost(t *testing.T, l *lock.Locker, engine *faults) {
	t.Helper()
	engine.onAcquire(engine.answerLost)
	engine.onRelease(releaseDown)
	_, err := l.TryAcquire(t.Context(), "k")
	wantIs(t, err, errDown)
	synctest.Wait() // the first attempt to release it has failed
	engine.onAcquire(nil)
	engine.onRelease(nil)
}

func TestGhostOfAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		leaveGhost(t, l, engine)
		lease := acquire(t, l, "k")
		engine.wantSent(t, requests{acquire: 3, release: 2})
		pass(10 * time.Second)
		wantAlive(t, lease, true)
		if n := engine.sent().release; n != 2 {
			t.Errorf("%d releases were sent, want 2: the ghost is done with", n)
		}
	})
}

// A caller that would wait for the lock does not wait for a ghost either.
func TestGhostIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		leaveGhost(t, l, engine)
		release(t, wait(t, l, "k").got(t))
	})
}

func TestGhostOfRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		lease := acquire(t, l, "k")
		engine.onRelease(releaseDown)
		wantIs(t, lease.Release(t.Context()), errDown)
		synctest.Wait()
		engine.onRelease(nil)
		release(t, acquire(t, l, "k"))
		engine.wantFree(t, "k")
	})
}

// The watchdog's own attempt hangs. The caller does not wait for it.
func TestGhostThatIsBeingReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		leaveGhost(t, l, engine)
		var calls atomic.Int32
		engine.onRelease(func(ctx context.Context, h lockengine.Request) error {
			if calls.Add(1) == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return engine.Engine.Release(ctx, h)
		})
		pass(time.Second + 100*time.Millisecond)
		if calls.Load() != 1 {
			t.Fatalf("%d releases were sent, want the one that hangs", calls.Load())
		}
		lease := acquire(t, l, "k")
		pass(10 * time.Second)
		wantAlive(t, lease, true)
		if n := calls.Load(); n > 3 {
			t.Errorf("%d releases were sent", n)
		}
	})
}

// The ghost can't be driven out: the lock is held, says the engine.
func TestGhostThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		lease := acquire(t, l, "k")
		engine.onRelease(releaseDown)
		wantIs(t, lease.Release(t.Context()), errDown)
		_, err := l.TryAcquire(t.Context(), "k")
		wantHeld(t, err, "k", lease.Grant().Owner)
		if n := engine.sent().acquire; n != 2 {
			t.Errorf("%d acquires were sent, want 2", n)
		}
	})
}

// The ghosts of another Locker are its own business.
func TestGhostOfAnotherLocker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		leaveGhost(t, newLocker(t, engine, lock.Config{}), engine)
		n := engine.sent().release
		if _, err := newLocker(t, engine, lock.Config{}).TryAcquire(t.Context(), "k"); err == nil {
			t.Error("the lock was granted")
		}
		if more := engine.sent().release - n; more != 0 {
			t.Errorf("%d releases were sent", more)
		}
	})
}

// A holder that does not know the outcome of its work, and one that has not
// noticed its loss, are no ghosts: the lock stays until it expires.
func TestNoGhost(t *testing.T) {
	for name, leave := range map[string]func(*faults, *lock.Lease){
		"abandoned": func(_ *faults, l *lock.Lease) { l.Abandon() },
		"lost":      func(engine *faults, _ *lock.Lease) { engine.onRenew(renewDown) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				l := newLocker(t, engine, lock.Config{TTL: ttl})
				lease := acquire(t, l, "k")
				leave(engine, lease)
				pass(believed)
				_, err := l.TryAcquire(t.Context(), "k")
				wantHeld(t, err, "k", lease.Grant().Owner)
				if sent := engine.sent(); sent.acquire != 2 || sent.release != 0 {
					t.Errorf("requests = %+v, want 2 acquires, no release", sent)
				}
				pass(ttl - believed)
				acquire(t, l, "k")
			})
		})
	}
}

// An engine that stood still for longer than the ttl executes an acquire when the
// Locker has given up to release it. The Locker releases it when it meets it.
func TestAcquireExecutedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		var late lockengine.Request
		engine.onAcquire(func(ctx context.Context, h lockengine.Request, _ time.Duration) (lockengine.Grant, error) {
			late = h
			<-ctx.Done()
			return lockengine.Grant{}, lockengine.ErrNoAnswer
		})
		engine.onRelease(releaseDown) // all of it stands still
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := l.TryAcquire(ctx, "k")
		wantIs(t, err, lockengine.ErrNoAnswer)
		pass(ttl + 2*time.Second)

		// It goes on, and executes what is in its sockets.
		engine.onAcquire(nil)
		engine.onRelease(nil)
		if _, err := engine.Engine.Acquire(t.Context(), late, ttl); err != nil {
			t.Fatal(err)
		}
		lease := acquire(t, l, "k")
		pass(ttl)
		wantAlive(t, lease, true)
	})
}

// Two acquires are executed late, the second when the first is released.
func TestAcquiresExecutedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		var late []lockengine.Request
		engine.onAcquire(func(_ context.Context, r lockengine.Request, _ time.Duration) (lockengine.Grant, error) {
			late = append(late, r)
			return lockengine.Grant{}, lockengine.ErrNoAnswer
		})
		for range 2 {
			_, err := l.TryAcquire(t.Context(), "k")
			wantIs(t, err, lockengine.ErrNoAnswer)
		}
		synctest.Wait() // they are released, and not there yet
		engine.onAcquire(func(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
			if len(late) > 0 {
				_, _ = engine.Engine.Acquire(ctx, late[0], ttl)
				late = late[1:]
			}
			return engine.Engine.Acquire(ctx, r, ttl)
		})
		wantAlive(t, acquire(t, l, "k"), true)
	})
}

// A grant that comes when its caller can't use it any more has only begun in the
// engine: it is released.
func TestLateGrantIsReleased(t *testing.T) {
	for name, answer := range map[string]error{"granted": nil, "unanswered": lockengine.ErrNoAnswer} {
		for end, settle := range map[string]func(*lock.Locker) error{
			"soon":     func(*lock.Locker) error { pass(time.Second); return nil },
			"by Close": func(l *lock.Locker) error { return l.Close(context.Background()) },
		} {
			t.Run(name+", "+end, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					engine := newFaults()
					l := newLocker(t, engine, lock.Config{TTL: ttl})
					engine.onAcquire(func(_ context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
						<-time.After(ttl + time.Second)
						grant, err := engine.Engine.Acquire(context.Background(), h, ttl)
						return grant, errors.Join(err, answer)
					})
					if _, err := l.TryAcquire(t.Context(), "k"); err == nil {
						t.Fatal("a grant of long ago is believed in")
					}
					wantIs(t, settle(l), nil)
					engine.wantFree(t, "k")
				})
			})
		}
	}
}

// A lock whose holder may be at work is left to expire. Once it must have, a
// renewal that was executed late does not keep the key locked.
func TestRenewalExecutedLate(t *testing.T) {
	for name, tt := range map[string]struct {
		leave  func(*lock.Lease)
		spared time.Duration
	}{
		"abandoned": {func(l *lock.Lease) { l.Abandon() }, ttl},
		"lost":      {func(*lock.Lease) {}, believed + ttl},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				l := newLocker(t, engine, lock.Config{TTL: ttl})
				lease := acquire(t, l, "k")
				engine.onRenew(renewDown)
				tt.leave(lease)
				const late = ttl - time.Millisecond
				pass(late)
				hold := lockengine.Request{Key: "k", Owner: lease.Grant().Owner}
				if err := engine.Engine.Renew(t.Context(), []lockengine.Request{hold}, ttl)[0]; err != nil {
					t.Fatal(err)
				}
				if tt.spared > late {
					pass(tt.spared - late - time.Microsecond)
				}
				_, err := l.TryAcquire(t.Context(), "k")
				wantHeld(t, err, "k", lease.Grant().Owner)
				pass(time.Microsecond)
				release(t, acquire(t, l, "k"))
			})
		})
	}
}

// Whom to spare is forgotten when the locks have expired.
func TestSparedAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, newFaults(), lock.Config{TTL: ttl})
		pass(time.Second)
		for _, key := range manyKeys(100) {
			acquire(t, l, key).Abandon()
		}
		if n := l.Spared(); n != 100 {
			t.Errorf("%d owners are spared, want 100", n)
		}
		pass(2 * ttl)
		release(t, acquire(t, l, "k")) // the watchdog wakes
		pass(ttl)
		if n := l.Spared(); n != 0 {
			t.Errorf("%d owners are spared after their locks have expired", n)
		}
	})
}

// What Close can still release, it does, however much it is.
func TestCloseReleasesAllGhosts(t *testing.T) {
	const holds = 200
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		engine.onAcquire(engine.answerLost)
		engine.onRelease(releaseDown)
		keys := manyKeys(holds)
		for _, key := range keys {
			_, err := l.TryAcquire(t.Context(), key)
			wantIs(t, err, errDown)
		}
		pass(10 * time.Millisecond)
		engine.onRelease(nil)
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		for _, key := range keys {
			engine.wantFree(t, key)
		}
	})
}
