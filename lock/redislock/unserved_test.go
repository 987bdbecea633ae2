package redislock_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// A lock whose slot no node serves is at no node, so that its failures are no other lock's. It is
// found again when a node serves the slot.
func TestSlotIsNotServed(t *testing.T) {
	t.Parallel()
	c := startCluster(t, "unserved")
	e := open(t, c.Addrs...)
	l := newLocker(t, e, lock.Config{TTL: 5 * time.Second})
	s := c.shardOf("k")
	healthy := elsewhere(t, c.client, "k", 1)[0]
	for _, key := range []string{"k", healthy} {
		if err := lease(t, l, key).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	unassign(t, c, s.slot)
	testwait.Until(t, "the slot has no place", func() bool {
		_, err := l.TryAcquire(t.Context(), "k")
		wantIs(t, err, lockengine.ErrNotSent)
		return e.Locate("k") == lockengine.Place{Slot: s.slot}
	})
	if p := e.Locate(healthy); p.Node == "" {
		t.Errorf("the lock of a slot that is served is at %+v", p)
	}
	c.must(s.master, "CLUSTER", "ADDSLOTS", s.slot)
	testwait.Until(t, "the slot is at its master", func() bool {
		held, err := l.TryAcquire(t.Context(), "k")
		if err == nil {
			_ = held.Release(t.Context())
		}
		return err == nil && e.Locate("k").Node == s.master
	})
}

// unassign takes a slot from all nodes of a cluster.
func unassign(t *testing.T, c *ownCluster, slot int) {
	t.Helper()
	for _, addr := range c.Addrs {
		client := redis.NewClient(&redis.Options{Addr: addr})
		_ = client.Do(t.Context(), "CLUSTER", "DELSLOTS", slot).Err() // it may have learned of it already
		_ = client.Close()
	}
}
