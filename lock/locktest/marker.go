package locktest

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// unlessMarked acquires r unless its key is marked.
func (c *check) unlessMarked(e lockengine.Engine, r lockengine.Request) error {
	c.Helper()
	r.UnlessMarked = true
	_, err := c.try(e, r, longTTL)
	return err
}

func (c *check) releaseMarked(e lockengine.Engine, r lockengine.Request, keep time.Duration) {
	c.Helper()
	r.Mark = keep
	c.release(e, r)
}

// Who asks learns of the marker, in all processes and without taking the key.
// Who does not, does not.
func markedKeyIsRefused(c *check) {
	if err := c.unlessMarked(c.Engine, c.mine); err != nil {
		c.Fatalf("Acquire: %v", err)
	}
	c.wantHeld(c.unlessMarked(c.Other, c.theirs), c.key, c.mine.Owner)
	c.releaseMarked(c.Engine, c.mine, longTTL)
	for range 2 {
		for _, e := range []lockengine.Engine{c.Engine, c.Other} {
			c.wantIs(c.unlessMarked(e, c.request(c.key)), lockengine.ErrMarked)
			c.wantHolder(c.key, "")
		}
	}
	if err := c.unlessMarked(c.Engine, c.request(newKey())); err != nil {
		c.Errorf("another key: %v", err)
	}
	c.acquire(c.Other, c.theirs, longTTL)
	c.wantIs(c.unlessMarked(c.Engine, c.mine), lockengine.ErrMarked) // whoever holds it
	c.wantHolder(c.key, c.theirs.Owner)
}

func markExpires(c *check) {
	c.acquire(c.Engine, c.mine, longTTL)
	c.releaseMarked(c.Engine, c.mine, ttl)
	c.wantIs(c.unlessMarked(c.Other, c.theirs), lockengine.ErrMarked)
	c.age(ttl)
	c.eventually("expired", func() bool { return c.unlessMarked(c.Other, c.theirs) == nil })
	c.wantHolder(c.key, c.theirs.Owner)
}

// A marker and a lock share a key, and nothing else.
func markIsNoLock(c *check) {
	c.acquire(c.Engine, c.mine, longTTL)
	c.releaseMarked(c.Engine, c.mine, longTTL)
	c.acquire(c.Engine, c.mine, brief)
	if errs := c.Engine.Renew(c.ctx(), []lockengine.Request{c.mine}, longTTL); errs[0] != nil {
		c.Errorf("Renew: %v", errs[0])
	}
	c.release(c.Engine, c.mine)
	c.wantIs(c.unlessMarked(c.Other, c.theirs), lockengine.ErrMarked)
}

// The work is done, even if the lock had gone.
func markWithoutLock(c *check) {
	c.acquire(c.Other, c.theirs, longTTL)
	mine := c.mine
	mine.Mark = longTTL
	c.wantIs(c.Engine.Release(c.ctx(), mine), lockengine.ErrNotHeld)
	c.wantHolder(c.key, c.theirs.Owner)
	c.wantIs(c.unlessMarked(c.Engine, c.mine), lockengine.ErrMarked)
}

// Of many who want to do a piece of work, in several processes, one does it, and
// all others learn that it is done.
func markedWorkIsDoneOnce(c *check) {
	var did, told atomic.Int32
	ctx := c.ctx()
	const callers = 8
	c.crowd(lock.Config{}, callers, func(l *lock.Locker) {
		lease, err := l.Acquire(ctx, c.key, lock.UnlessMarked())
		switch {
		case errors.Is(err, lockengine.ErrMarked):
			told.Add(1)
		case err != nil:
			c.Errorf("Acquire: %v", err)
		default:
			did.Add(1)
			if err := lease.ReleaseMarked(ctx, longTTL); err != nil {
				c.Errorf("ReleaseMarked: %v", err)
			}
		}
	})
	if did.Load() != 1 || told.Load() != 3*callers-1 {
		c.Errorf("%d did the work and %d were told, want 1 and %d", did.Load(), told.Load(), 3*callers-1)
	}
}
