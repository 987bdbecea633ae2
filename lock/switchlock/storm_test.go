package switchlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/switchlock"
)

// A counted engine answers and notifies after a round trip, and counts requests.
type counted struct {
	lockengine.Engine
	dead bool
	loud bool // it notifies of each release, as engines do whose waiters watch the key itself

	mu       sync.Mutex
	requests int
	wakes    map[int]func()
	next     int
}

const roundTrip = time.Millisecond

func newCounted() *counted { return &counted{Engine: memlock.New(), wakes: make(map[int]func())} }

func (c *counted) count() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	return c.dead
}

func (c *counted) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	if c.count() {
		return lockengine.Grant{}, lockengine.ErrNotSent
	}
	<-time.After(roundTrip)
	return c.Engine.Acquire(ctx, r, ttl)
}

func (c *counted) Release(ctx context.Context, r lockengine.Request) error {
	if c.count() {
		return lockengine.ErrNotSent
	}
	<-time.After(roundTrip)
	err := c.Engine.Release(ctx, r)
	if err == nil && (c.loud || !r.Quiet) {
		time.AfterFunc(roundTrip, c.ring)
	}
	return err
}

func (c *counted) ring() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, wake := range c.wakes {
		wake()
	}
}

func (c *counted) Watch(_ context.Context, _ string, wake func()) (stop func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.next
	c.next++
	c.wakes[n] = wake
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.wakes, n)
	}, nil
}

func (c *counted) sent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests
}

// A waiter polls at most once in 10 ms, in each state of a switch: a request of each kind.
const mostRequests = 2 * 100

// Waiters of a key that is free in the old engine, and that the new engine does not grant, send no
// more requests than those that poll: what they take in the old engine and give back wakes nobody.
func TestWaitersDoNotStorm(t *testing.T) {
	for _, crowd := range []struct {
		waiters int
		loud    bool
	}{{1, false}, {3, false}, {10, false}, {3, true}} {
		for name, block := range map[string]func(t *testing.T, next *counted){
			"held in the new engine alone": func(t *testing.T, next *counted) {
				if _, err := next.Engine.Acquire(t.Context(), theirs, time.Hour); err != nil {
					t.Fatal(err)
				}
			},
			"the new engine is dead": func(_ *testing.T, next *counted) { next.dead = true },
		} {
			t.Run(fmt.Sprintf("%s, %+v", name, crowd), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const d = 10 * time.Second
					old, next := newCounted(), newCounted()
					old.loud, next.loud = crowd.loud, crowd.loud
					held, err := newLocker(t, old, time.Hour).Acquire(t.Context(), "k")
					if err != nil {
						t.Fatal(err)
					}
					block(t, next)
					source := &store{record: unending()}
					ctx, cancel := context.WithCancel(t.Context())
					var waits sync.WaitGroup
					for range crowd.waiters {
						e := open(t, switchlock.Config{Source: source, Engines: map[string]lockengine.Engine{"old": old, "new": next}, First: "old", Logger: slog.New(slog.DiscardHandler)})
						l := newLocker(t, e, time.Hour)
						waits.Go(func() {
							if _, err := l.Acquire(ctx, "k"); err == nil {
								t.Error("a waiter gets the lock")
							}
						})
					}
					<-time.After(2 * time.Second)
					if err := held.Release(t.Context()); err != nil {
						t.Fatal(err)
					}
					before := old.sent()
					<-time.After(d)
					most := crowd.waiters * mostRequests * int(d.Seconds())
					n := old.sent() - before
					t.Logf("%d requests in %v, at most %d", n, d, most)
					if n > most || n == 0 {
						t.Errorf("%d requests in %v, want 1 to %d", n, d, most)
					}
					cancel()
					waits.Wait()
				})
			})
		}
	}
}

// What is taken in the old engine and given back, as the new one does not grant it, wakes nobody.
func TestAcquireInVainWakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, next := newCounted(), newCounted()
		if _, err := next.Engine.Acquire(t.Context(), theirs, time.Hour); err != nil {
			t.Fatal(err)
		}
		e := open(t, switchlock.Config{Source: &store{record: unending()}, Engines: map[string]lockengine.Engine{"old": old, "new": next}, First: "old"})
		woken := 0
		stop, err := old.Watch(t.Context(), mine.Key, func() { woken++ })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		if _, err := e.Acquire(t.Context(), mine, ttl); err == nil {
			t.Error("the lock is granted")
		}
		<-time.After(time.Second)
		if woken > 0 {
			t.Errorf("woken %d times", woken)
		}
	})
}

// unending returns the record of a switch that lasts.
func unending() switchlock.Record {
	return switchlock.Record{Epoch: 2, From: "old", To: "new", Lease: lease, TTL: longest, Cross: longest}
}

func newLocker(t *testing.T, e lockengine.Engine, ttl time.Duration) *lock.Locker {
	t.Helper()
	l, err := lock.New(e, lock.Config{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = l.Close(ctx)
	})
	return l
}
