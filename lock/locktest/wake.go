package locktest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock/lockengine"
)

// A bell is rung by an engine.
type bell struct {
	rung chan struct{}
	n    atomic.Int32
	stop func()
}

func (c *check) watch(e lockengine.Engine, key string) *bell {
	c.Helper()
	waker, ok := e.(lockengine.Waker)
	if !ok {
		c.Fatalf("a %T is no lockengine.Waker", e)
	}
	b := &bell{rung: make(chan struct{}, 1)}
	ctx := c.ctx()
	for { // as a Locker, which tries again if the store takes its time
		stop, err := waker.Watch(ctx, key, func() {
			b.n.Add(1)
			wait.Wake(b.rung)
		})
		if err == nil {
			b.stop = sync.OnceFunc(stop)
			break
		}
		if wait.Sleep(ctx, pause, nil) != nil {
			c.Fatalf("Watch: %v", err)
		}
	}
	c.Cleanup(b.stop)
	return b
}

func (c *check) wantRung(b *bell) {
	c.Helper()
	select {
	case <-b.rung:
	case <-c.ctx().Done():
		c.Fatalf("no wake within %v of the release", limit)
	}
}

// All who watch a key are woken by each release of it, whoever makes it.
func releaseWakes(c *check) {
	bells := []*bell{c.watch(c.Engine, c.key), c.watch(c.Engine, c.key), c.watch(c.Other, c.key)}
	for range 3 {
		for _, e := range []lockengine.Engine{c.Engine, c.Other} {
			r := c.request(c.key)
			c.acquire(e, r, longTTL)
			c.release(e, r)
			for _, b := range bells {
				c.wantRung(b)
			}
		}
	}
}

func watchIsStopped(c *check) {
	first, second := c.watch(c.Engine, c.key), c.watch(c.Engine, c.key)
	first.stop()
	before := first.n.Load()
	c.acquire(c.Other, c.mine, longTTL)
	c.release(c.Other, c.mine)
	c.wantRung(second)
	if first.n.Load() != before {
		c.Error("woken after stop")
	}

	stop, err := c.Engine.(lockengine.Waker).Watch(c.ended(), newKey(), func() {})
	if err == nil {
		stop()
	}
}

// acquireWoken acquires a lock after an attempt that ended with err: whenever the bell has rung,
// or by polls, as nobody is woken for a lock that was granted in part.
func (c *check) acquireWoken(b *bell, r lockengine.Request, err error) {
	c.Helper()
	for err != nil {
		if !isPartial(err) {
			c.wantRung(b)
		} else if wait.Sleep(c.ctx(), pause, nil) != nil {
			c.Fatalf("Acquire %q for %s: %v", r.Key, r.Owner, err)
		}
		_, err = c.try(c.Engine, r, longTTL)
	}
}

// pause is the time between two polls.
const pause = 10 * time.Millisecond

func isPartial(err error) bool {
	held, ok := errors.AsType[*lockengine.HeldError](err)
	return ok && held.Partial
}

// A release that Watch does not hear has come before it returned: who asks then
// gets the lock.
func noWakeIsLost(c *check) {
	for range 100 {
		key := newKey()
		holder, waiter := c.request(key), c.request(key)
		c.acquire(c.Other, holder, longTTL)
		released := make(chan error, 1)
		go func() { released <- c.Other.Release(c.Context(), holder) }()
		b := c.watch(c.Engine, key)
		if _, err := c.Engine.Acquire(c.ctx(), waiter, longTTL); err != nil {
			c.wantHeld(err, key, holder.Owner)
			c.acquireWoken(b, waiter, err)
		}
		if err := <-released; err != nil {
			c.Fatalf("Release: %v", err)
		}
		b.stop()
		c.release(c.Engine, waiter)
	}
}
