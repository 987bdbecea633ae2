package locktest

import (
	"sync"
	"sync/atomic"

	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock"
)

// A bell is rung by an engine.
type bell struct {
	rung chan struct{}
	n    atomic.Int32
	stop func()
}

func (c *check) watch(e lock.Engine, key string) *bell {
	c.Helper()
	waker, ok := e.(lock.Waker)
	if !ok {
		c.Fatalf("a %T is no lock.Waker", e)
	}
	b := &bell{rung: make(chan struct{}, 1)}
	stop, err := waker.Watch(c.ctx(), key, func() {
		b.n.Add(1)
		wait.Wake(b.rung)
	})
	if err != nil {
		c.Fatalf("Watch: %v", err)
	}
	b.stop = sync.OnceFunc(stop)
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
		for _, e := range []lock.Engine{c.Engine, c.Other} {
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

	stop, err := c.Engine.(lock.Waker).Watch(c.ended(), newKey(), func() {})
	if err == nil {
		stop()
	}
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
			c.wantRung(b)
			c.acquire(c.Engine, waiter, longTTL)
		}
		if err := <-released; err != nil {
			c.Fatalf("Release: %v", err)
		}
		b.stop()
		c.release(c.Engine, waiter)
	}
}
