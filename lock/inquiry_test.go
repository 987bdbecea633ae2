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
)

// answersAfter returns an engine that is sound, and whose answers take rtt.
func answersAfter(rtt time.Duration) *faults {
	engine := newFaults()
	engine.onAcquire(func(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
		select {
		case <-time.After(rtt):
			return engine.Engine.Acquire(ctx, r, ttl)
		case <-ctx.Done():
			return lockengine.Grant{}, errors.Join(lockengine.ErrNoAnswer, ctx.Err())
		}
	})
	return engine
}

// waitFor has a caller wait for k for as long as d.
func waitFor(t *testing.T, l *lock.Locker, d time.Duration) *waiter {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return waitWith(ctx, t, l, "k")
}

// Callers that wait for a key behind others of their process reach the head of the queue with less
// time left than one answer takes. Each gets a HeldError, as the first one does: the engine is sound.
func TestShortTimeLeftIsNoOutage(t *testing.T) {
	for _, rtt := range []time.Duration{6 * time.Millisecond, 10 * time.Millisecond, 90 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			engine := answersAfter(rtt)
			other := newLocker(t, engine, lock.Config{})
			holder, err := other.Acquire(t.Context(), "k")
			wantIs(t, err, nil)
			l := newLocker(t, engine, lock.Config{})
			var callers []*waiter
			for range 100 {
				callers = append(callers, waitFor(t, l, 100*time.Millisecond))
				pass(5 * time.Millisecond)
			}
			pass(time.Second)
			for i, w := range callers {
				err := w.failed(t)
				wantIs(t, err, context.DeadlineExceeded)
				if _, ok := errors.AsType[*lockengine.HeldError](err); !ok || errors.Is(err, lockengine.ErrNoAnswer) {
					t.Errorf("answers after %v: caller %d gets %q, want a *HeldError", rtt, i, err)
				}
			}
			release(t, holder)
			lease, err := l.Acquire(t.Context(), "k")
			wantIs(t, err, nil)
			release(t, lease)
		})
	}
}

// A queue of callers that have little time each finds out nevertheless that the engine does not
// answer any more.
func TestSilenceIsNoticedByShortTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := answersAfter(time.Millisecond)
		acquire(t, newLocker(t, engine, lock.Config{}), "k")
		l := newLocker(t, engine, lock.Config{})
		first := waitFor(t, l, 100*time.Millisecond)
		pass(50 * time.Millisecond)
		engine.onAcquire(func(ctx context.Context, _ lockengine.Request, _ time.Duration) (lockengine.Grant, error) {
			<-ctx.Done()
			return lockengine.Grant{}, errors.Join(lockengine.ErrNoAnswer, ctx.Err())
		})
		var callers []*waiter
		for range 400 {
			callers = append(callers, waitFor(t, l, 100*time.Millisecond))
			pass(5 * time.Millisecond)
		}
		pass(time.Second)
		if _, ok := errors.AsType[*lockengine.HeldError](first.failed(t)); !ok {
			t.Errorf("the caller that was answered gets %v, want a *HeldError", first.failed(t))
		}
		for i, w := range callers[200:] {
			if err := w.failed(t); !errors.Is(err, lockengine.ErrNoAnswer) {
				t.Errorf("caller %d, a second after the engine went silent, gets %v, want ErrNoAnswer", i, err)
			}
		}
	})
}

// A grant that comes when the caller's time is over goes to the next caller in line, and to nobody
// if there is none.
func TestLateGrantGoesToTheNextInLine(t *testing.T) {
	for _, next := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			engine := answersAfter(20 * time.Millisecond)
			l := newLocker(t, engine, lock.Config{HandOver: time.Millisecond})
			first, err := l.Acquire(t.Context(), "k")
			wantIs(t, err, nil)
			handed := waitFor(t, l, time.Minute)
			short := waitFor(t, l, 100*time.Millisecond)
			var last *waiter
			if next {
				last = waitFor(t, l, time.Minute)
			}
			pass(90 * time.Millisecond)
			release(t, first) // handed over, once
			release(t, handed.got(t))
			pass(15 * time.Millisecond)
			if _, ok := errors.AsType[*lockengine.HeldError](short.failed(t)); !ok {
				t.Errorf("the caller whose time is over gets %v, want a *HeldError", short.failed(t))
			}
			pass(5 * time.Millisecond)
			if next {
				release(t, last.got(t))
				synctest.Wait()
			}
			engine.wantSent(t, requests{acquire: 2, release: 2})
			engine.wantFree(t, "k")
			wantIs(t, l.Close(t.Context()), nil)
		})
	}
}

// An engine that panics after the caller's time is over costs no more than that request.
func TestLateAnswerThatDoesNotCome(t *testing.T) {
	for how, leave := range map[string]func(){"panic": func() { panic("a hook") }, "Goexit": runtime.Goexit} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				l := newLocker(t, engine, lock.Config{HandOver: -1})
				first := acquire(t, l, "k")
				short := waitFor(t, l, 100*time.Millisecond)
				engine.onAcquire(func(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
					_, _ = engine.Engine.Acquire(ctx, r, ttl)
					<-time.After(20 * time.Millisecond)
					leave()
					return lockengine.Grant{}, nil
				})
				pass(90 * time.Millisecond)
				release(t, first)
				pass(time.Second)
				_ = short.failed(t)
				engine.wantFree(t, "k")
				engine.onAcquire(nil)
				release(t, acquire(t, l, "k"))
				wantIs(t, l.Close(t.Context()), nil)
			})
		})
	}
}

// Close waits for a request whose caller has gone, and ends it with its own context.
func TestCloseEndsLateRequests(t *testing.T) {
	for _, wait := range []time.Duration{time.Minute, 50 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaults()
			l := newLocker(t, engine, lock.Config{HandOver: -1})
			first := acquire(t, l, "k")
			short := waitFor(t, l, 100*time.Millisecond)
			engine.onAcquire(answersAfter(400 * time.Millisecond).Acquire)
			pass(90 * time.Millisecond)
			release(t, first)
			pass(20 * time.Millisecond)
			_ = short.failed(t)
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			if err := l.Close(ctx); (err != nil) != (wait < time.Second) {
				t.Errorf("Close for %v: %v", wait, err)
			}
		})
	}
}
