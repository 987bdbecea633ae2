package locktest

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

func closeWhileHolding(c *check) {
	l := c.locker(c.Engine, lock.Config{})
	lease := c.lease(l, c.key)
	closed := make(chan error, 1)
	go func() { closed <- l.Close(c.ctx()) }()
	c.eventually("refused", func() bool {
		other, err := l.TryAcquire(c.ctx(), newKey())
		if err == nil {
			c.free(other)
			return false
		}
		c.wantIs(err, lock.ErrClosed)
		return true
	})
	if err := lease.Err(); err != nil {
		c.Errorf("the lease has ended: %v", err)
	}
	c.free(lease)
	if err := <-closed; err != nil {
		c.Errorf("Close: %v", err)
	}

	l = c.locker(c.Engine, lock.Config{})
	lease = c.lease(l, c.key)
	c.wantIs(l.Close(c.ended()), context.Canceled)
	c.wantIs(lease.Err(), lock.ErrLost, lock.ErrClosed)
	c.wantIs(lease.Release(c.ctx()), lock.ErrLost)
	c.release(c.Other, lockengine.Request{Key: c.key, Owner: lease.Grant().Owner}) // would have expired
}

func closeWhileWaiting(c *check) {
	lease := c.lease(c.locker(c.Other, lock.Config{}), c.key)
	l := c.locker(c.Engine, lock.Config{})
	ctx := c.ctx()
	var waiters []*waiter
	for range 3 { // one asks, two queue
		waiters = append(waiters, c.wait(ctx, l, c.key))
	}
	if err := l.Close(ctx); err != nil {
		c.Errorf("Close: %v", err)
	}
	for _, w := range waiters {
		<-w.done
		c.wantIs(w.err, lock.ErrClosed)
	}
	c.wantHolder(c.key, lease.Grant().Owner)
	c.free(lease)
}

// noGoroutineIsLeft uses Lockers in all ways and looks what is left when they
// and their engines are closed.
func noGoroutineIsLeft(t *testing.T, newSetup func(t *testing.T) Setup) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Run("Use", func(t *testing.T) {
		c := newCheck(t, newSetup, nil)
		c.compete(lock.Config{}, 4, 2)
		if c.Fault != nil {
			answersInTime(newCheck(t, newSetup, nil))
		}
		lossIsTold(c)
		c.waitInVain(200 * time.Millisecond)
		closeWhileWaiting(c)
		c.acquire(c.Other, c.mine, longTTL)
		gone := c.wait(c.ctx(), c.locker(c.Engine, lock.Config{}), c.key)
		c.release(c.Other, c.mine)
		c.free(c.got(gone))
	})
	if err := goleak.Find(before); err != nil {
		t.Errorf("goroutines are left: %v", err)
	}
}
