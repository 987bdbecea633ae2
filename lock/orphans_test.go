package lock_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// The acquire was executed, but the caller never learnt it.
func TestAnswerOfAcquireLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l, other := newLocker(t, engine, lock.Config{}), newLocker(t, engine, lock.Config{})
		engine.onAcquire(engine.answerLost)
		_, err := l.TryAcquire(t.Context(), "k")
		wantIs(t, err, errDown)
		engine.onAcquire(nil)
		synctest.Wait()
		release(t, acquire(t, other, "k"))
		release(t, acquire(t, l, "k"))
		pass(ttl)
		if n := engine.sent().release; n != 3 {
			t.Errorf("%d releases were sent, want 3: a hold that was freed is done with", n)
		}
	})
}

// TestAnswerLostToACallerThatLeaves: it has asked for a lock that it does not know of.
func TestAnswerLostToACallerThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		engine.onAcquire(func(ctx context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
			_, err := engine.answerLost(ctx, h, ttl)
			<-ctx.Done()
			return lockengine.Grant{}, err
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := newLocker(t, engine, lock.Config{}).TryAcquire(ctx, "k")
		wantIs(t, err, errDown, context.DeadlineExceeded)
		synctest.Wait()
		engine.wantFree(t, "k")
	})
}

// The acquire is executed after the first release of it.
func TestDelayedAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l, other := newLocker(t, engine, lock.Config{TTL: ttl}), newLocker(t, engine, lock.Config{})
		engine.onAcquire(func(_ context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
			time.AfterFunc(3500*time.Millisecond, func() {
				_, _ = engine.Engine.Acquire(context.Background(), h, ttl)
			})
			return lockengine.Grant{}, errDown
		})
		_, err := l.TryAcquire(t.Context(), "k")
		wantIs(t, err, errDown)
		engine.onAcquire(nil)
		pass(3500 * time.Millisecond)
		if _, err := other.TryAcquire(t.Context(), "k"); err == nil {
			t.Fatal("the delayed acquire was not executed")
		}
		pass(time.Second)
		release(t, acquire(t, other, "k"))
	})
}

// An engine that answered with a refusal has taken nothing, so there is nothing
// to release, and nothing that Close has to wait for.
func TestAnsweredRefusalLeavesNothing(t *testing.T) {
	for _, kind := range []error{lockengine.ErrNotSent, lockengine.ErrRefused, lockengine.ErrUnusable} {
		t.Run(kind.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				l := newLocker(t, engine, lock.Config{TTL: ttl})
				engine.onAcquire(away(kind))
				engine.onRelease(releaseDown)
				for _, key := range manyKeys(100) {
					_, err := l.TryAcquire(t.Context(), key)
					wantIs(t, err, kind)
				}
				start := time.Now()
				wantIs(t, l.Close(t.Context()), nil)
				if took := time.Since(start); took != 0 {
					t.Errorf("Close took %v", took)
				}
				engine.wantSent(t, requests{acquire: 100})
			})
		})
	}
}

// A refusal may come with a request whose outcome is unknown.
func TestRefusalThatMayHold(t *testing.T) {
	for name, err := range map[string]error{
		"unanswered":                      lockengine.ErrNoAnswer,
		"unclassified":                    errDown,
		"refused, and not released again": fmt.Errorf("%w: %w", lockengine.ErrRefused, lockengine.ErrNoAnswer),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				l := newLocker(t, engine, lock.Config{TTL: ttl})
				engine.onAcquire(func(ctx context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
					_, _ = engine.Engine.Acquire(ctx, h, ttl)
					return lockengine.Grant{}, err
				})
				_, got := l.TryAcquire(t.Context(), "k")
				wantIs(t, got, err)
				synctest.Wait()
				engine.wantFree(t, "k")
			})
		})
	}
}

// An acquire of which nothing is heard any more is forgotten after the ttl.
func TestRetiredHoldExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		engine.onAcquire(func(context.Context, lockengine.Request, time.Duration) (lockengine.Grant, error) {
			return lockengine.Grant{}, errDown
		})
		_, err := l.TryAcquire(t.Context(), "k")
		wantIs(t, err, errDown)
		pass(ttl + 2*time.Second)
		sent := engine.sent().release
		if sent < 25 || sent > 32 {
			t.Errorf("%d releases in %v, want about one a second", sent, ttl)
		}
		pass(ttl)
		if more := engine.sent().release - sent; more != 0 {
			t.Errorf("%d releases after the ttl", more)
		}
	})
}

// What piled up while the engine was away does not run it over.
func TestManyRetiredHolds(t *testing.T) {
	const holds, limit = 1000, 64
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		var now, most atomic.Int32
		slow := func(ctx context.Context, h lockengine.Request) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			<-time.After(100 * time.Millisecond)
			return engine.Engine.Release(ctx, h)
		}
		engine.onAcquire(engine.answerLost)
		engine.onRelease(releaseDown)
		for i := range holds {
			_, err := l.TryAcquire(t.Context(), strconv.Itoa(i))
			wantIs(t, err, errDown)
		}
		engine.onAcquire(nil)
		pass(5 * time.Second)

		engine.onRelease(slow)
		pass(5 * time.Second)
		engine.onRelease(nil)
		for i := range holds {
			release(t, acquire(t, l, strconv.Itoa(i)))
		}
		if n := most.Load(); n == 0 || n > limit {
			t.Errorf("%d releases at a time, want 1 to %d", n, limit)
		}
	})
}

// Holds that can't be settled are released again at a rate that doesn't grow with
// their number.
func TestRepeatedReleasesAreFew(t *testing.T) {
	const holds, perSecond = 1000, 100
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		engine.onAcquire(away(lockengine.ErrNoAnswer)) // it was not executed, but nobody knows
		for _, key := range manyKeys(holds) {
			_, err := l.TryAcquire(t.Context(), key)
			wantIs(t, err, lockengine.ErrNoAnswer)
		}
		synctest.Wait()
		if n := engine.sent().release; n != holds {
			t.Errorf("%d releases at once, want one of each of %d holds", n, holds)
		}
		for range int(ttl / time.Second) {
			before := engine.sent().release
			pass(time.Second)
			if n := engine.sent().release - before; n > 2*perSecond {
				t.Errorf("%d releases in a second, want about %d", n, perSecond)
			}
		}
		pass(time.Second)
		if n := gather(t, l)["orphans"]; n != 0 {
			t.Errorf("%v orphans after the ttl", n)
		}
	})
}

// However many releases others cause on a node in trouble, a hold on a healthy one
// is released again.
func TestRepeatsAreNotStarved(t *testing.T) {
	const perSecond = 150
	for name, trouble := range map[string]func(int) string{
		"by new holds":                    func(i int) string { return "new:" + strconv.Itoa(i) },
		"by callers whom a hold holds up": func(int) string { return "ghost" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				l := newLocker(t, engine, lock.Config{TTL: ttl})
				engine.onAcquire(func(ctx context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
					if h.Key == "k" {
						time.AfterFunc(2500*time.Millisecond, func() {
							_, _ = engine.Engine.Acquire(context.Background(), h, ttl)
						})
						return lockengine.Grant{}, lockengine.ErrNoAnswer
					}
					return engine.answerLost(ctx, h, ttl)
				})
				engine.onRelease(func(ctx context.Context, h lockengine.Request) error {
					if h.Key == "k" {
						return engine.Engine.Release(ctx, h)
					}
					return errDown
				})
				_, err := l.TryAcquire(t.Context(), "k")
				wantIs(t, err, lockengine.ErrNoAnswer)
				for i := range 10 * perSecond {
					_, _ = l.TryAcquire(t.Context(), trouble(i))
					pass(time.Second / perSecond)
				}
				engine.wantFree(t, "k")
			})
		})
	}
}

// What piled up during an outage is free soon after it, for other processes, too.
func TestRetiredHoldsAreFreeSoonAfterOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		engine.onAcquire(engine.answerLost)
		engine.onRelease(releaseDown)
		keys := manyKeys(1000)
		for _, key := range keys {
			_, err := l.TryAcquire(t.Context(), key)
			wantIs(t, err, errDown)
		}
		pass(10 * time.Second)
		engine.onRelease(nil)
		pass(3 * time.Second)
		for _, key := range keys {
			engine.wantFree(t, key)
		}
	})
}

// An engine that answers nothing for long costs a bounded amount of memory. What was
// orphaned is released when it answers again, and Close tells of the rest.
func TestRetiredHoldsAreBounded(t *testing.T) {
	const bound, more = 10_000, 1000
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: time.Hour, RequestTimeout: time.Second})
		engine.onAcquire(engine.answerLost)
		engine.onRelease(func(ctx context.Context, _ lockengine.Request) error {
			<-ctx.Done()
			return lockengine.ErrNoAnswer
		})
		keys := manyKeys(bound + more)
		for _, key := range keys {
			_, err := l.TryAcquire(t.Context(), key)
			wantIs(t, err, errDown)
		}
		pass(time.Minute)
		if n := gather(t, l)["orphans"]; n != bound {
			t.Errorf("%v orphans, want %d", n, bound)
		}

		engine.onAcquire(nil)
		engine.onRelease(nil)
		pass(10 * time.Minute)
		for _, key := range keys[:bound] {
			engine.wantFree(t, key)
		}
		release(t, acquire(t, l, keys[bound])) // met by a caller of this Locker
		if err := l.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "1000 locks") {
			t.Errorf("Close: %v, want it to tell of %d locks", err, more)
		}
		pass(time.Hour)
		wantIs(t, l.Close(t.Context()), nil)
	})
}

// BenchmarkBesideRetiredHolds is what callers of a key pay for holds of others
// that are orphans.
func BenchmarkBesideRetiredHolds(b *testing.B) {
	for _, holds := range []int{0, 10_000} {
		b.Run(strconv.Itoa(holds), func(b *testing.B) {
			engine := newFaults()
			l := newLocker(b, engine, lock.Config{TTL: time.Hour})
			engine.onAcquire(away(lockengine.ErrNoAnswer))
			for _, key := range manyKeys(holds) {
				_, _ = l.TryAcquire(b.Context(), key)
			}
			engine.onAcquire(nil)
			for b.Loop() {
				release(b, acquire(b, l, "k"))
			}
		})
	}
}

// A holder that learnt of its loss may still have the lock in the engine: its
// Release frees it for others.
func TestReleaseAfterLossFreesLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		lease := acquire(t, l, "k")
		engine.onRenew(renewDown)
		pass(believed)
		wantIs(t, lease.Release(t.Context()), lock.ErrLost)
		synctest.Wait()
		release(t, acquire(t, l, "k"))
	})
}
