package locktest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// stormTime is how long the requests of waiters are counted.
const stormTime = 500 * time.Millisecond

// A counter is an engine that counts the requests that a Locker makes.
type counter struct {
	lockengine.Engine
	acquires, releases atomic.Int64
}

func (n *counter) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	n.acquires.Add(1)
	return n.Engine.Acquire(ctx, r, ttl)
}

func (n *counter) Release(ctx context.Context, r lockengine.Request) error {
	n.releases.Add(1)
	return n.Engine.Release(ctx, r)
}

// A wakingCounter is a counter of an engine that is a lockengine.Waker.
type wakingCounter struct {
	*counter
	lockengine.Waker
}

// counted returns an engine that counts, and its counts.
func counted(e lockengine.Engine) (lockengine.Engine, *counter) {
	n := &counter{Engine: e}
	if w, ok := e.(lockengine.Waker); ok {
		return wakingCounter{n, w}, n
	}
	return n, n
}

// waitersDoNotStorm has three processes wait for a lock, while it is held and while the engine is
// cut off in each way. A waiter makes no more attempts than one in 10 ms, the shortest time between
// two polls, and at most one release for each: nobody wakes a waiter while nobody releases the lock.
func waitersDoNotStorm(c *check) {
	const waiters, shortest = 3, 10 * time.Millisecond
	c.acquire(c.Other, c.mine, longTTL)
	ctx, cancel := context.WithCancel(c.Context())
	var counts []*counter
	var waits sync.WaitGroup
	for range waiters {
		e, n := counted(c.Engine)
		l := c.locker(e, lock.Config{TTL: longTTL})
		counts = append(counts, n)
		waits.Go(func() {
			for ctx.Err() == nil { // one that is rejected for good comes again
				if lease, err := l.Acquire(ctx, c.key); err == nil {
					c.Error("a waiter gets the lock, which is held")
					c.free(lease)
				}
				<-time.After(shortest)
			}
		})
	}
	defer waits.Wait()
	defer cancel()
	states := []Fault{""}
	if c.Fault != nil {
		states = append(states, faults...)
	}
	for _, f := range states {
		heal := func() {}
		if f != "" {
			heal = c.Fault(f)
		}
		before := make([]int64, waiters)
		begun := time.Now()
		for i, n := range counts {
			before[i] = n.acquires.Load() + n.releases.Load()
		}
		<-time.After(stormTime)
		var sum int64
		for i, n := range counts {
			sent := n.acquires.Load() + n.releases.Load() - before[i]
			sum += sent
			if most := 2 * (int64(time.Since(begun)/shortest) + 2); sent > most {
				c.Errorf("%q: a waiter made %d requests in %v, want %d at most", f, sent, stormTime, most)
			}
		}
		c.Logf("%q: %.0f requests per waiter and second", f, float64(sum)/waiters/time.Since(begun).Seconds())
		heal()
		c.connect(1)
		c.wantIs(c.Other.Renew(c.ctx(), []lockengine.Request{c.mine}, longTTL)[0], nil)
	}
}
