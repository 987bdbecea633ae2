package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
)

// lockLoad is load by a Locker on keys of all shards.
func lockLoad(t *testing.T, c *ownCluster, l *lock.Locker) (stop func() []error) {
	t.Helper()
	var keys []string
	for i := range 24 {
		keys = append(keys, fmt.Sprint("load", i))
	}
	cycles, end := load(t, keys, func(key string) error {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		lease, err := l.Acquire(ctx, key)
		if err != nil {
			return err
		}
		return lease.Release(ctx)
	})
	testwait.Until(t, "the load runs", func() bool { return cycles.Load() > 1000 })
	return func() []error {
		before := cycles.Load()
		testwait.Until(t, "the load runs on", func() bool { return cycles.Load() > before+1000 })
		return end()
	}
}

func wantNoErrors(t *testing.T, errs []error) {
	t.Helper()
	if len(errs) > 0 {
		t.Errorf("%d errors, the first: %v", len(errs), errs[0])
	}
}

// Nobody notices a failover by hand: the old master hands everything over.
func testManualFailover(t *testing.T, c *ownCluster) {
	l := newLocker(t, open(t, c.Addrs...), lock.Config{TTL: 3 * time.Second})
	s := c.shardOf("a")
	held := lease(t, l, "a")
	stop := lockLoad(t, c, l)
	replica := c.replicaOf(s.master)
	c.must(replica, "CLUSTER", "FAILOVER")
	testwait.Until(t, "the replica is the master", func() bool { return c.shardOf("a").master == replica })
	deadline := held.Grant().Deadline
	testwait.Until(t, "the lease is renewed there", func() bool { return held.Grant().Deadline.After(deadline) })
	wantNoErrors(t, stop())
	if err := held.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// Nobody notices that the servers forget the scripts.
func testScriptFlush(t *testing.T, c *ownCluster) {
	const ttl = 6 * time.Second // a renewal in time on a busy machine, too
	l := newLocker(t, open(t, c.Addrs...), lock.Config{TTL: ttl})
	held := lease(t, l, "a")
	stop := lockLoad(t, c, l)
	deadline := held.Grant().Deadline
	testwait.Until(t, "renewed twice", func() bool {
		if err := held.Err(); err != nil {
			t.Fatal(err)
		}
		for _, master := range c.masters() {
			c.must(master, "SCRIPT", "FLUSH")
		}
		return held.Grant().Deadline.Sub(deadline) > ttl/2
	})
	// No server takes a second for want of a script: only a busy machine does.
	wantNoErrors(t, slices.DeleteFunc(stop(), func(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }))
	if err := held.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// Somebody deletes everything. The holder is told, and does no harm to the one who has the lock then.
func testFlushAll(t *testing.T, c *ownCluster) {
	l := newLocker(t, open(t, c.Addrs...), lock.Config{TTL: 6 * time.Second})
	e := open(t, c.Addrs...)
	other := newLocker(t, e, lock.Config{})
	held := lease(t, l, "a")
	c.must(c.shardOf("a").master, "FLUSHALL")
	next, err := other.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	<-held.Context().Done()
	if late := time.Since(held.Grant().Deadline); late > 0 {
		t.Errorf("told of the loss %v after the deadline", late)
	}
	wantIs(t, context.Cause(held.Context()), lock.ErrLost)
	wantIs(t, held.Release(t.Context()), lock.ErrLost)
	if holder, err := e.Inspect(t.Context(), "a"); err != nil || holder.Owner != next.Grant().Owner {
		t.Errorf("held by %+v (%v), want %s", holder, err, next.Grant().Owner)
	}
	if err := next.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
	free(t, e, "a")
}
