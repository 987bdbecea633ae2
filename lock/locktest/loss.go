package locktest

import (
	"context"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

func leaseOutlivesTTL(c *check) {
	lease := c.lease(c.locker(c.Engine, lock.Config{TTL: ttl}), c.key)
	c.pass(2 * ttl)
	if err := lease.Err(); err != nil {
		c.Fatalf("the lease has ended: %v", err)
	}
	_, err := c.locker(c.Other, lock.Config{}).TryAcquire(c.ctx(), c.key)
	c.wantHeld(err, c.key, lease.Grant().Owner)
	c.free(lease)
	c.wantHolder(c.key, "")
}

// lose takes the lock away behind its holder's back.
func (c *check) lose(lease *lock.Lease) {
	c.Helper()
	c.release(c.Other, lockengine.Request{Key: lease.Grant().Key, Owner: lease.Grant().Owner})
}

// wantEnd waits until the lease's context has ended.
func (c *check) wantEnd(lease *lock.Lease) {
	c.Helper()
	select {
	case <-lease.Context().Done():
	case <-time.After(limit):
		c.Fatalf("after %v the lease still lives", limit)
	}
}

// The holder learns of the loss at the latest when it can't know better any
// more.
func lossIsTold(c *check) {
	lease := c.lease(c.locker(c.Engine, lock.Config{TTL: ttl}), c.key)
	deadline := lease.Grant().Deadline
	c.lose(lease)
	select {
	case <-lease.Context().Done():
	case <-time.After(time.Until(deadline)):
	}
	c.wantIs(lease.Err(), lock.ErrLost)
	c.wantEnd(lease)
	c.wantIs(context.Cause(lease.Context()), lock.ErrLost)
	c.wantIs(lease.Release(c.ctx()), lock.ErrLost)
	c.free(c.lease(c.locker(c.Engine, lock.Config{}), c.key))
}

func lossIsFoundAtRelease(c *check) {
	l := c.locker(c.Engine, lock.Config{})
	lease := c.lease(l, c.key)
	c.lose(lease)
	c.wantIs(lease.Release(c.ctx()), lock.ErrLost)
	c.free(c.lease(l, c.key))
}

func lateReleaseHarmsNobody(c *check) {
	lease := c.lease(c.locker(c.Engine, lock.Config{TTL: ttl}), c.key)
	c.lose(lease)
	next := c.lease(c.locker(c.Other, lock.Config{}), c.key)
	c.wantEnd(lease) // the renewal did not take it back
	c.wantHolder(c.key, next.Grant().Owner)
	c.wantIs(lease.Release(c.ctx()), lock.ErrLost)
	c.wantHolder(c.key, next.Grant().Owner)
	c.free(next)
}

func maxHold(c *check) {
	l := c.locker(c.Engine, lock.Config{TTL: ttl, MaxHold: ttl / 4})
	lease := c.lease(l, c.key)
	c.wantEnd(lease)
	c.wantIs(lease.Err(), lock.ErrMaxHold, lock.ErrLost)
	w := c.wait(c.ctx(), l, c.key)
	c.age(ttl) // it is renewed no more
	next := c.got(w)
	c.wantIs(lease.Release(c.ctx()), lock.ErrMaxHold)
	c.wantHolder(c.key, next.Grant().Owner)
	_ = next.Release(c.ctx())
}
