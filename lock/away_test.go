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

// away is an engine that fails in a way that may pass.
func away(kind error) acquireFunc {
	return func(context.Context, lockengine.Request, time.Duration) (lockengine.Grant, error) {
		return lockengine.Grant{}, fmt.Errorf("%w: %w", kind, errDown)
	}
}

var passingFailures = map[string]error{
	"not sent": lockengine.ErrNotSent, "no answer": lockengine.ErrNoAnswer, "refused": lockengine.ErrRefused,
}

func TestWaitWhileEngineIsAway(t *testing.T) {
	for name, kind := range passingFailures {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				engine.onAcquire(away(kind))
				w := wait(t, newLocker(t, engine, lock.Config{TTL: ttl}), "k")
				pass(ttl - time.Second)
				w.wantWaiting(t)
				engine.onAcquire(nil)
				pass(time.Second)
				release(t, w.got(t))
			})
		})
	}
}

// Those behind a caller that can't reach the engine learn that, and not that another has
// the key.
func TestQueueWhileEngineIsAway(t *testing.T) {
	for name, kind := range passingFailures {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				engine.onAcquire(away(kind))
				l := newLocker(t, engine, lock.Config{TTL: ttl})
				head := wait(t, l, "k")
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				behind := waitWith(ctx, t, l, "k")
				pass(time.Second)
				_, err := l.TryAcquire(t.Context(), "k")
				for _, err := range []error{behind.failed(t), err} {
					wantIs(t, err, kind)
					if held, ok := errors.AsType[*lockengine.HeldError](err); ok {
						t.Errorf("error is %v, want the engine's", held)
					}
				}
				engine.onAcquire(nil)
				pass(time.Second)
				lease := head.got(t)
				_, err = l.TryAcquire(t.Context(), "k")
				if _, ok := errors.AsType[*lockengine.HeldError](err); !ok {
					t.Errorf("error is %v, want that another has the key", err)
				}
				release(t, lease)
			})
		})
	}
}

// A Local caller needs no engine: only the caller before it keeps it from the key.
func TestLocalBehindACallerWhoseEngineIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		engine.onAcquire(away(lockengine.ErrNotSent))
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		head := wait(t, l, "k")
		pass(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, ended := l.Acquire(ctx, "k", lock.Local())
		wantIs(t, ended, context.DeadlineExceeded)
		_, now := l.TryAcquire(t.Context(), "k", lock.Local())
		for _, err := range []error{ended, now} {
			if _, ok := errors.AsType[*lockengine.HeldError](err); !ok {
				t.Errorf("error is %v, want that another has the key", err)
			}
		}
		engine.onAcquire(nil)
		pass(time.Second)
		release(t, head.got(t))
	})
}

// An outage of a ttl in a row is long enough. An answer in between counts.
func TestEngineIsAwayForTooLong(t *testing.T) {
	for name, kind := range passingFailures {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				elsewhere(t, engine)
				w := wait(t, newLocker(t, engine, lock.Config{TTL: ttl}), "k")
				for range 3 {
					engine.onAcquire(away(kind))
					pass(ttl - time.Second)
					engine.onAcquire(nil)
					pass(time.Second)
					w.wantWaiting(t)
				}
				engine.onAcquire(away(kind))
				pass(ttl - time.Second)
				w.wantWaiting(t)
				pass(2 * time.Second)
				err := w.failed(t)
				wantIs(t, err, kind, errDown)
				if _, ok := errors.AsType[*lockengine.HeldError](err); ok {
					t.Errorf("error is %v, want the engine's", err)
				}
			})
		})
	}
}

// Callers in line give up when the engine has not answered for a ttl since they came, and not one ttl
// after the other. Each asks once itself.
func TestQueueGivesUpAfterATTL(t *testing.T) {
	for name, kind := range passingFailures {
		for state, held := range map[string]bool{"never answered": false, "answered before": true} {
			t.Run(name+", "+state, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					engine := newFaults()
					l := newLocker(t, engine, lock.Config{TTL: ttl})
					if held {
						elsewhere(t, engine)
						w := wait(t, l, "k")
						defer func() { _ = w.failed(t) }()
					}
					pass(2 * ttl)
					engine.onAcquire(away(kind))
					early := []*waiter{wait(t, l, "k"), wait(t, l, "k"), wait(t, l, "k")}
					pass(ttl / 2)
					late := []*waiter{wait(t, l, "k"), wait(t, l, "k")}
					pass(ttl/2 - time.Second)
					early[2].wantWaiting(t)
					pass(2 * time.Second)
					for _, w := range early {
						wantIs(t, w.failed(t), kind, errDown)
					}
					pass(ttl/2 - 2*time.Second)
					late[1].wantWaiting(t)
					pass(2 * time.Second)
					for _, w := range late {
						wantIs(t, w.failed(t), kind, errDown)
					}
				})
			})
		}
	}
}

// A caller whose engine is back when it is its turn gets the lock, however long it has waited.
func TestLastInLineAsksForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		asked := 0
		engine.onAcquire(func(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
			if asked++; asked == 1 {
				<-time.After(ttl)
			}
			if asked < 3 {
				return away(lockengine.ErrNoAnswer)(ctx, r, ttl)
			}
			return engine.Engine.Acquire(ctx, r, ttl)
		})
		queue := []*waiter{wait(t, l, "k"), wait(t, l, "k"), wait(t, l, "k")}
		pass(ttl + time.Second)
		for _, w := range queue[:2] {
			wantIs(t, w.failed(t), lockengine.ErrNoAnswer)
		}
		release(t, queue[2].got(t))
	})
}

// An answer to a caller in line counts for those behind it.
func TestQueueIsAnsweredInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		elsewhere(t, engine)
		first, second := wait(t, l, "k"), wait(t, l, "k")
		for range 3 {
			engine.onAcquire(away(lockengine.ErrNoAnswer))
			pass(ttl - time.Second)
			engine.onAcquire(nil)
			pass(time.Second)
		}
		engine.onAcquire(away(lockengine.ErrNoAnswer))
		first.cancel()
		pass(ttl - 2*time.Second)
		second.wantWaiting(t)
		engine.onAcquire(nil)
		second.wantWaiting(t)
	})
}

func TestOtherFailuresAreReturnedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		engine.onAcquire(away(errors.New("not allowed")))
		l := newLocker(t, engine, lock.Config{})
		wantIs(t, wait(t, l, "k").failed(t), errDown)
		engine.wantSent(t, requests{acquire: 1, release: 1})

		for _, kind := range passingFailures {
			engine.onAcquire(away(kind))
			_, err := l.TryAcquire(t.Context(), "k")
			wantIs(t, err, kind, errDown)
		}
	})
}

func TestContextEndsWhileEngineIsAway(t *testing.T) {
	for _, answered := range []bool{false, true} {
		t.Run(fmt.Sprintf("answered before %t", answered), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for range 20 { // during a request, or in between
					engine := newFaults()
					owner := ""
					if answered {
						owner = elsewhere(t, engine).Grant().Owner
					} else {
						engine.onAcquire(away(lockengine.ErrNoAnswer))
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					w := waitWith(ctx, t, newLocker(t, engine, lock.Config{}), "k")
					engine.onAcquire(func(ctx context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
						select {
						case <-ctx.Done():
						case <-time.After(40 * time.Millisecond):
						}
						return away(lockengine.ErrNoAnswer)(ctx, h, ttl)
					})
					pass(time.Second)
					cancel()
					err := w.failed(t)
					wantIs(t, err, context.DeadlineExceeded)
					_, held := errors.AsType[*lockengine.HeldError](err)
					if held != answered {
						t.Fatalf("error is %v, a *HeldError: %t", err, held)
					}
					if answered {
						wantHeld(t, err, "k", owner)
					} else {
						wantIs(t, err, errDown)
					}
				}
			})
		})
	}
}

// Each request without an answer may have left a hold behind, and an engine that
// refuses is in trouble, so there are not many of them. Those that were not sent
// cost nothing.
func TestPaceWhileEngineIsAway(t *testing.T) {
	for _, tt := range []struct {
		name        string
		kind        error
		least, most int // requests in 20 s
	}{
		{"not sent", lockengine.ErrNotSent, 400, 2000},
		{"no answer", lockengine.ErrNoAnswer, 20, 130},
		{"refused", lockengine.ErrRefused, 20, 130},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				engine.onAcquire(away(tt.kind))
				w := wait(t, newLocker(t, engine, lock.Config{TTL: ttl}), "k")
				pass(20 * time.Second)
				w.wantWaiting(t)
				if n := engine.sent().acquire; n < tt.least || n > tt.most {
					t.Errorf("%d requests, want %d to %d", n, tt.least, tt.most)
				}
			})
		})
	}
}

func TestCloseWhileEngineIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		engine.onAcquire(away(lockengine.ErrNotSent))
		l := newLocker(t, engine, lock.Config{})
		w := wait(t, l, "k")
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		wantIs(t, w.failed(t), lock.ErrClosed)
	})
}

// What was not sent need not be released.
func TestRetiredUnlessNotSent(t *testing.T) {
	for _, tt := range []struct {
		name   string
		kind   error
		orphan bool
	}{
		{"not sent", lockengine.ErrNotSent, false},
		{"no answer", lockengine.ErrNoAnswer, true},
		{"another error", errors.New("out of memory"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				engine.onAcquire(away(tt.kind))
				_, err := newLocker(t, engine, lock.Config{}).TryAcquire(t.Context(), "k")
				wantIs(t, err, errDown)
				pass(10 * time.Second)
				if n := engine.sent().release; (n > 0) != tt.orphan {
					t.Errorf("%d releases were sent", n)
				}
			})
		})
	}
}
