package lock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

// Several processes with many callers each count up one number that nothing but
// the lock protects.
func TestExclusion(t *testing.T) {
	const processes, callers, rounds = 3, 16, 10
	engine := memlock.New()
	count := 0
	var wg sync.WaitGroup
	for range processes {
		l := newLocker(t, engine, lock.Config{})
		for range callers {
			wg.Go(func() {
				for range rounds {
					lease, err := l.Acquire(t.Context(), "counter")
					if err != nil {
						t.Errorf("Acquire: %v", err)
						return
					}
					seen := count
					runtime.Gosched()
					count = seen + 1
					release(t, lease)
				}
			})
		}
	}
	wg.Wait()
	if want := processes * callers * rounds; count != want {
		t.Errorf("counted %d, want %d", count, want)
	}
}

func TestTryAcquireOfKeyHeldHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		lease := acquire(t, l, "k")
		_, err := l.TryAcquire(t.Context(), "k")
		wantHeld(t, err, "k", lease.Grant().Owner)
		if n := engine.sent().acquire; n != 1 {
			t.Errorf("%d acquires were sent, want 1", n)
		}
		acquire(t, l, "another key")
	})
}

func TestTryAcquireWhileAnotherCallerAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{HandOver: -1})
		before := acquire(t, l, "k")
		go func() { _, _ = l.Acquire(t.Context(), "k") }()
		synctest.Wait()
		engine.onAcquire(func(ctx context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
			<-time.After(time.Second)
			return engine.Engine.Acquire(ctx, h, ttl)
		})
		release(t, before)
		synctest.Wait()
		_, err := l.TryAcquire(t.Context(), "k")
		wantHeld(t, err, "k", "") // nobody knows who will have it
		if n := engine.sent().acquire; n != 2 {
			t.Errorf("%d acquires were sent, want 2", n)
		}
		pass(time.Second)
	})
}

func TestTryAcquireOfKeyHeldElsewhere(t *testing.T) {
	engine := newFaults()
	lease := acquire(t, newLocker(t, engine, lock.Config{}), "k")
	other := newLocker(t, engine, lock.Config{})
	_, err := other.TryAcquire(t.Context(), "k")
	wantHeld(t, err, "k", lease.Grant().Owner)
	release(t, lease)
	release(t, acquire(t, other, "k"))
}

func TestAcquireWaitsForAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memlock.New()
		lease := acquire(t, newLocker(t, engine, lock.Config{}), "k")
		other := newLocker(t, engine, lock.Config{})
		time.AfterFunc(time.Minute, func() { release(t, lease) })
		start := time.Now()
		got, err := other.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited < time.Minute || waited > time.Minute+50*time.Millisecond {
			t.Errorf("got the lock after %v, want within one poll of the release", waited)
		}
		if got.Grant().Token <= lease.Grant().Token {
			t.Errorf("token %d after %d, want it to grow", got.Grant().Token, lease.Grant().Token)
		}
	})
}

func TestContextEndsWait(t *testing.T) {
	for _, where := range []string{"in the queue", "while it polls"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := memlock.New()
				holder := newLocker(t, engine, lock.Config{})
				lease := acquire(t, holder, "k")
				l := holder
				if where == "while it polls" {
					l = newLocker(t, engine, lock.Config{})
				}

				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				_, err := l.Acquire(ctx, "k")
				wantHeld(t, err, "k", lease.Grant().Owner)
				wantIs(t, err, context.DeadlineExceeded)

				ctx, cancel = context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				_, err = l.Acquire(ctx, "k")
				wantHeld(t, err, "k", lease.Grant().Owner)
				wantIs(t, err, context.Canceled)

				release(t, lease)
				release(t, acquire(t, l, "k")) // nobody was left at the gate
			})
		})
	}
}

func TestEndedContextAsksNothing(t *testing.T) {
	engine := newFaults()
	l := newLocker(t, engine, lock.Config{})
	_, err := l.Acquire(endedContext(), "k")
	wantIs(t, err, context.Canceled)
	_, err = l.TryAcquire(endedContext(), "k")
	wantIs(t, err, context.Canceled)
	if sent := engine.sent(); sent != (requests{}) {
		t.Errorf("requests = %+v, want none", sent)
	}
}

// The engine may be the first to see that the caller's deadline has passed. It
// is then not the engine that failed.
func TestDeadlineNoticedByEngineFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		engine.onAcquire(func(ctx context.Context, _ lockengine.Request, _ time.Duration) (lockengine.Grant, error) {
			deadline, _ := ctx.Deadline()
			<-time.After(time.Until(deadline))
			return lockengine.Grant{}, errDown
		})
		_, err := l.Acquire(lateContext{t.Context(), time.Now().Add(time.Second)}, "k")
		wantIs(t, err, errDown, context.DeadlineExceeded)
	})
}

// lateContext has a deadline that it does not notice.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// The context ends while the engine is being asked again: the key was held.
func TestContextEndsDuringRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		lease := acquire(t, newLocker(t, engine, lock.Config{}), "k")
		l := newLocker(t, engine, lock.Config{})
		asked := 0
		engine.onAcquire(func(ctx context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
			if asked++; asked == 1 {
				return engine.Engine.Acquire(ctx, h, ttl)
			}
			<-ctx.Done()
			return lockengine.Grant{}, errDown
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := l.Acquire(ctx, "k")
		wantHeld(t, err, "k", lease.Grant().Owner)
		wantIs(t, err, context.DeadlineExceeded)
	})
}

// An answer that comes after the ttl is useless. A caller with all the time in the
// world does not wait for it.
func TestRequestIsBoundedByTTL(t *testing.T) {
	for name, ask := range map[string]func(*lock.Locker) (*lock.Lease, error){
		"Acquire":    func(l *lock.Locker) (*lock.Lease, error) { return l.Acquire(context.Background(), "k") },
		"TryAcquire": func(l *lock.Locker) (*lock.Lease, error) { return l.TryAcquire(context.Background(), "k") },
		"Acquire with a distant deadline": func(l *lock.Locker) (*lock.Lease, error) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			return l.Acquire(ctx, "k")
		},
		"TryAcquire unless marked": func(l *lock.Locker) (*lock.Lease, error) {
			return l.TryAcquire(context.Background(), "k", lock.UnlessMarked())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, kind := range []error{lockengine.ErrNoAnswer, lockengine.ErrNotSent} {
					l := newLocker(t, silent{newFaults(), kind}, lock.Config{TTL: ttl})
					start := time.Now()
					_, err := ask(l)
					wantIs(t, err, kind)
					if errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v: the caller's context has not ended", err)
					}
					if took := time.Since(start); took > 2*ttl {
						t.Errorf("it took %v, want at most %v", took, 2*ttl)
					}
				}
			})
		})
	}
}

// A client of the engine may give up long before the Locker does, as after a dial. The error says
// after how long.
func TestClientGivesUpBeforeTheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		engine.onAcquire(func(context.Context, lockengine.Request, time.Duration) (lockengine.Grant, error) {
			<-time.After(time.Second)
			return lockengine.Grant{}, fmt.Errorf("%w: dial: %w", lockengine.ErrNotSent, context.DeadlineExceeded)
		})
		_, err := newLocker(t, engine, lock.Config{}).TryAcquire(t.Context(), "k")
		if err == nil || !strings.Contains(err.Error(), "not reached within 1s") {
			t.Errorf("error is %v, want one after a second", err)
		}
	})
}

// silent is an engine that answers no acquire before its context ends.
type silent struct {
	*faults
	kind error
}

func (s silent) Acquire(ctx context.Context, _ lockengine.Request, _ time.Duration) (lockengine.Grant, error) {
	<-ctx.Done()
	if errors.Is(s.kind, lockengine.ErrNoAnswer) {
		return lockengine.Grant{}, ctx.Err() // as it is, it says no more than that
	}
	return lockengine.Grant{}, fmt.Errorf("%w: %w", s.kind, ctx.Err())
}

// An engine that does not set up its subscription has a waiter poll.
func TestSubscriptionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newBells()
		holder := acquire(t, newLocker(t, engine, lock.Config{TTL: ttl}), "k")
		engine.onWatch(func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		})
		w := wait(t, newLocker(t, engine, lock.Config{TTL: ttl}), "k")
		pass(time.Second)
		release(t, holder)
		pass(ttl)
		release(t, w.got(t))
	})
}
