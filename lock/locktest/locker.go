package locktest

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/internal/parallel"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// crowd has callers of three processes work, and checks that none of them holds the
// key afterwards.
func (c *check) crowd(cfg lock.Config, callers int, work func(*lock.Locker)) {
	c.Helper()
	var wg sync.WaitGroup
	for _, e := range []lockengine.Engine{c.Engine, c.Engine, c.Other} {
		l := c.locker(e, cfg)
		for range callers {
			wg.Go(func() { work(l) })
		}
	}
	wg.Wait()
	c.awaitFree(c.key)
}

// awaitFree waits until an engine says that nobody has a key: a server that is behind may say
// so a moment later than the one that has released it.
func (c *check) awaitFree(key string) {
	c.Helper()
	for {
		holder, err := c.Engine.Inspect(c.ctx(), key)
		if err == nil && holder.Owner == "" {
			return
		}
		if wait.Sleep(c.ctx(), pause, nil) != nil {
			c.Fatalf("Inspect: %q is held by %q (%v), want nobody", key, holder.Owner, err)
		}
	}
}

// compete has a crowd acquire a lock in turn, and returns the tokens in the order in
// which the holders wrote them. Nothing but the lock protects the list; it is atomic
// for the race detector, which does not know the store.
func (c *check) compete(cfg lock.Config, callers, rounds int) []int64 {
	var tokens atomic.Pointer[[]int64]
	tokens.Store(new([]int64))
	ctx := c.ctx()
	c.crowd(cfg, callers, func(l *lock.Locker) {
		for range rounds {
			lease, err := l.Acquire(ctx, c.key)
			if err != nil {
				c.Errorf("Acquire: %v", err)
				return
			}
			before := *tokens.Load()
			runtime.Gosched()
			after := append(before, lease.Grant().Token)
			tokens.Store(&after)
			c.free(lease)
		}
	})
	return *tokens.Load()
}

func lockersExclude(c *check) {
	const callers, rounds = 8, 5
	withoutHandOver := lock.Config{HandOver: -1} // so that the engine is asked each time
	if n := len(c.compete(withoutHandOver, callers, rounds)); n != 3*callers*rounds {
		c.Errorf("%d entries, want %d: some were overwritten", n, 3*callers*rounds)
	}
}

// Over grants of the engine and hand-overs in memory.
func tokensGrowInOrderOfHolding(c *check) {
	tokens := c.compete(lock.Config{}, 4, 10)
	handed := 0
	for i := 1; i < len(tokens); i++ {
		if tokens[i] <= tokens[i-1] {
			c.Fatalf("token %d after %d", tokens[i], tokens[i-1])
		}
		if tokens[i] == tokens[i-1]+1 {
			handed++
		}
	}
	c.Logf("%d of %d grants were handed over in memory", handed, len(tokens))
}

func tryAcquireOfHeldLock(c *check) {
	here, there := c.locker(c.Engine, lock.Config{}), c.locker(c.Other, lock.Config{})
	lease := c.lease(here, c.key)
	for _, l := range []*lock.Locker{here, there} {
		_, err := l.TryAcquire(c.ctx(), c.key)
		c.wantHeld(err, c.key, lease.Grant().Owner)
	}
	c.free(c.lease(here, newKey()))
	holder, err := here.Engine().Inspect(c.ctx(), c.key)
	if err != nil || holder.Owner != lease.Grant().Owner {
		c.Errorf("Inspect: %+v, %v", holder, err)
	}
	c.free(lease)
	c.free(c.lease(there, c.key))
	c.free(c.lease(here, c.key))
}

func releaseTwice(c *check) {
	lease := c.lease(c.locker(c.Engine, lock.Config{}), c.key)
	c.free(lease)
	next := c.lease(c.locker(c.Other, lock.Config{}), c.key)
	c.wantIs(lease.Release(c.ctx()), lockengine.ErrNotHeld)
	c.wantIs(lease.Err(), lockengine.ErrNotHeld)
	c.wantIs(context.Cause(lease.Context()), lockengine.ErrNotHeld)
	c.wantHolder(c.key, next.Grant().Owner)
	c.free(next)
}

func waitEndsWithContext(c *check) {
	owner, errs := c.waitInVain(2 * time.Second) // they are refused before that
	for _, err := range errs {
		c.wantHeld(err, c.key, owner)
		c.wantIs(err, context.DeadlineExceeded)
	}
}

// waitInVain lets a caller of each process wait for d, and returns who holds the key and their errors.
func (c *check) waitInVain(d time.Duration) (owner string, errs [2]error) {
	c.Helper()
	lockers := []*lock.Locker{c.locker(c.Engine, lock.Config{}), c.locker(c.Other, lock.Config{})}
	lease := c.lease(lockers[0], c.key)
	c.free(c.lease(lockers[1], newKey())) // connected
	parallel.Do(len(lockers), func(i int) {
		ctx, cancel := context.WithTimeout(c.Context(), d)
		defer cancel()
		_, errs[i] = lockers[i].Acquire(ctx, c.key)
	})
	c.free(lease)
	c.wantHolder(c.key, "") // nobody is left who could still get it
	c.free(c.lease(lockers[1], c.key))
	return lease.Grant().Owner, errs
}

func releaseEndsWait(c *check) {
	here, there := c.locker(c.Engine, lock.Config{}), c.locker(c.Other, lock.Config{})
	for range 5 {
		lease := c.lease(here, c.key)
		ctx := c.ctx()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				lease, err := there.Acquire(ctx, c.key)
				if err != nil {
					c.Errorf("Acquire: %v", err)
					return
				}
				c.free(lease)
			})
		}
		<-time.After(50 * time.Millisecond) // so that they do wait, most of the times
		c.free(lease)
		wg.Wait()
	}
}

// The lock of a process that has died is free after its ttl.
func deadHolderIsFollowed(c *check) {
	c.acquire(c.Other, c.mine, brief)
	w := c.wait(c.ctx(), c.locker(c.Engine, lock.Config{}), c.key)
	c.age(brief)
	lease := c.got(w)
	c.wantHolder(c.key, lease.Grant().Owner)
	c.free(lease)
}

func nestedLeases(c *check) {
	here, there := c.locker(c.Engine, lock.Config{}), c.locker(c.Other, lock.Config{})
	outer := c.lease(here, c.key)
	inner, err := here.Acquire(outer.Context(), c.key)
	if err != nil {
		c.Fatalf("nested Acquire: %v", err)
	}
	if inner.Grant().Owner != outer.Grant().Owner {
		c.Errorf("owner of the nested lease is %s, want %s", inner.Grant().Owner, outer.Grant().Owner)
	}
	_, err = there.TryAcquire(outer.Context(), c.key) // another process
	c.wantHeld(err, c.key, outer.Grant().Owner)

	c.free(outer)
	c.wantHolder(c.key, outer.Grant().Owner)
	if err := inner.Err(); err != nil {
		c.Errorf("the nested lease has ended: %v", err)
	}
	c.free(inner)
	c.wantHolder(c.key, "")
	c.wantIs(inner.Release(c.ctx()), lockengine.ErrNotHeld)
}
