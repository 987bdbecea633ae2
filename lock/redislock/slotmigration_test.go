//go:build valkey

package redislock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/lockhistory"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
)

// Valkey 9 moves a slot to another master at once, with the locks in it, while processes acquire
// them, renew and release: no lock is lost, and none has two holders. Nor is one if a migration
// is cancelled on its way.
func TestHistoryOfSlotMigration(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second
	c := startCluster(t, "slots")
	fill(t, c)
	s := c.shardOf("{a}")
	kept := lease(t, newLocker(t, open(t, c.Addrs...), lock.Config{TTL: ttl}), "{a}kept")
	children := lockhistory.StartAll(t, lockhistory.Job{
		Where: clusterURL(c.Addrs), Keys: []string{"{a}0", "{a}1", "{a}2", "elsewhere"},
		Workers: 16, Hold: 2 * time.Millisecond, TTL: ttl,
	})
	spans := lockhistory.Observe(t, children, 50)
	for _, want := range []string{"cancelled", "success", "cancelled", "success"} {
		target := c.otherMaster(s)
		migrateAtOnce(t, c, s, target, want)
		if want == "success" {
			s.master = target
		}
		if owner := c.shardOf("{a}").master; owner != s.master {
			t.Fatalf("the slot is at %s, want %s", owner, s.master)
		}
		spans = append(spans, lockhistory.ObserveAfter(t, children, lockhistory.Now())...)
	}
	if err := kept.Release(t.Context()); err != nil {
		t.Errorf("the lock that was held all the time: %v", err)
	}
	for _, child := range children {
		child.Stop()
	}
	for _, child := range children {
		spans = append(spans, child.Finish()...)
	}
	for _, s := range spans {
		if s.End != lockhistory.Released {
			t.Errorf("lost, or not acquired: %+v", s)
		}
	}
	for _, wrong := range lockhistory.Judge(spans) {
		t.Error(wrong)
	}
	t.Logf("%d holds, %d overlaps", len(spans), lockhistory.Overlaps(spans))
}

// fill has each migration of the slot last for two seconds: what is beside the locks is copied one
// key after the other.
func fill(t *testing.T, c *ownCluster) {
	t.Helper()
	for _, addr := range c.masters() {
		c.must(addr, "CONFIG", "SET", "rdb-key-save-delay", 1000) // microseconds
	}
	_, err := c.client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range 2000 {
			p.Set(t.Context(), fmt.Sprint("{a}beside", i), i, 0)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// migrateAtOnce moves the slot of s to target, and cancels that on its way if this is the end to come.
func migrateAtOnce(t *testing.T, c *ownCluster, s shard, target, end string) {
	t.Helper()
	c.must(s.master, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", s.slot, s.slot, "NODE", c.id(target))
	if end == "cancelled" {
		testwait.Until(t, "locks are copied", func() bool { return migration(c, s.master) == "snapshotting" })
		c.must(s.master, "CLUSTER", "CANCELSLOTMIGRATIONS")
	}
	testwait.Until(t, "the migration has ended: "+end, func() bool { return migration(c, s.master) == end })
}

// migration returns the state of the latest migration from or to a master.
func migration(c *ownCluster, addr string) string {
	c.t.Helper()
	_, latest, _ := strings.Cut(c.must(addr, "CLUSTER", "GETSLOTMIGRATIONS"), " state:") // first in the list
	state, _, _ := strings.Cut(latest, " ")
	return state
}
