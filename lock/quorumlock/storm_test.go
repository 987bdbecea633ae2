package quorumlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

// A counted node answers and notifies after a round trip, and counts requests.
type counted struct {
	lockengine.Engine
	loud bool // it notifies of each release, as engines do whose waiters watch the key itself

	mu       sync.Mutex
	dead     bool
	requests int
	wakes    map[int]func()
	next     int
}

const roundTrip = time.Millisecond

func newCounted() *counted { return &counted{Engine: memlock.New(), wakes: make(map[int]func())} }

func (n *counted) count() (dead bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requests++
	return n.dead
}

func (n *counted) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	if n.count() {
		return lockengine.Grant{}, lockengine.ErrNotSent
	}
	<-time.After(roundTrip)
	return n.Engine.Acquire(ctx, r, ttl)
}

func (n *counted) Release(ctx context.Context, r lockengine.Request) error {
	if n.count() {
		return lockengine.ErrNotSent
	}
	<-time.After(roundTrip)
	err := n.Engine.Release(ctx, r)
	if err == nil && (n.loud || !r.Quiet) {
		time.AfterFunc(roundTrip, n.ring)
	}
	return err
}

func (n *counted) ring() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, wake := range n.wakes {
		wake()
	}
}

func (n *counted) Watch(_ context.Context, _ string, wake func()) (stop func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.next
	n.next++
	n.wakes[i] = wake
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.wakes, i)
	}, nil
}

func (n *counted) sent() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.requests
}

// When a majority dies, those who wait for a lock send no more requests to the nodes that live than
// those that poll, once in 10 ms at most: what such a node grants and takes back wakes nobody.
func TestWaitersDoNotStorm(t *testing.T) {
	for _, crowd := range []struct {
		waiters int
		loud    bool
	}{{1, false}, {3, false}, {10, false}, {3, true}} {
		t.Run(fmt.Sprintf("%+v", crowd), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const d = 10 * time.Second
				var nodes []*counted
				var engines []lockengine.Engine
				for range 3 {
					n := newCounted()
					n.loud = crowd.loud
					nodes, engines = append(nodes, n), append(engines, n)
				}
				held, err := newLocker(t, over(t, engines...), time.Hour).Acquire(t.Context(), "k")
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var waits sync.WaitGroup
				for range crowd.waiters {
					l := newLocker(t, over(t, engines...), time.Hour)
					waits.Go(func() {
						if _, err := l.Acquire(ctx, "k"); err == nil {
							t.Error("a waiter gets the lock")
						}
					})
				}
				<-time.After(time.Second)
				for _, n := range nodes[1:] {
					n.mu.Lock()
					n.dead = true
					n.mu.Unlock()
				}
				_ = held.Release(t.Context())
				<-time.After(d)
				before := nodes[0].sent()
				<-time.After(d)
				most := crowd.waiters * 2 * 100 * int(d.Seconds())
				n := nodes[0].sent() - before
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

// What a minority grants and takes back wakes nobody.
func TestAcquireInVainWakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lives := newCounted()
		dead, gone := newCounted(), newCounted()
		dead.dead, gone.dead = true, true
		woken := 0
		stop, err := lives.Watch(t.Context(), mine.Key, func() { woken++ })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		if _, err := over(t, lives, dead, gone).Acquire(t.Context(), mine, ttl); err == nil {
			t.Error("the lock is granted")
		}
		<-time.After(time.Second)
		if woken > 0 {
			t.Errorf("woken %d times", woken)
		}
	})
}
