package redislock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

// What it does to an engine that a node of a cluster fails.
func TestFaultsOfNodes(t *testing.T) {
	t.Parallel()
	playFaults(t, "nodes", map[string]faultCase{
		"a node that stands still":  testStill,
		"a master dies":             testMasterDies,
		"a process ends meanwhile":  testCloseMeanwhile,
		"a failover by hand":        testManualFailover,
		"by hand, tracked":          testTrackedManualFailover,
		"by hand, cut off, tracked": testTrackedOldMasterIsCutOff,
	})
}

// What it does to an engine that slots migrate, and that what nodes know is gone.
func TestFaultsOfData(t *testing.T) {
	t.Parallel()
	playFaults(t, "data", map[string]faultCase{
		"a slot migrates":           testMigration,
		"a slot migrates, markers":  testMigrationMarked,
		"a slot migrates, offers":   testMigrationOffered,
		"a slot migrates, lines":    testMigrationLine,
		"a slot migrates, replicas": testMigrationReplicated,
		"scripts are flushed":       testScriptFlush,
		"all keys are flushed":      testFlushAll,
		"a slot migrates, tracked":  testTrackedMigration,
		"keys are flushed, tracked": testTrackedFlush,
	})
}

type faultCase func(*testing.T, *ownCluster)

// playFaults runs cases that share a cluster, which is healed after each.
func playFaults(t *testing.T, name string, cases map[string]faultCase) {
	t.Helper()
	c := startCluster(t, name)
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			c.t = t
			test(t, c)
			c.Stack(t, "heal")
		})
	}
}

// load has a caller of its own for each key go through cycles until stop is
// called, which returns what went wrong.
func load(t *testing.T, keys []string, cycle func(key string) error) (cycles *atomic.Int64, stop func() []error) {
	t.Helper()
	cycles = new(atomic.Int64)
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for _, key := range keys {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := cycle(key); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
				cycles.Add(1)
			}
		})
	}
	return cycles, func() []error {
		cancel()
		wg.Wait()
		return errs
	}
}

func cycle(e redislock.Engine, h lockengine.Request) error { return cycleWithin(time.Second, e, h) }

func cycleWithin(limit time.Duration, e redislock.Engine, h lockengine.Request) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if _, err := e.Acquire(ctx, h, ttl); err != nil {
		return err
	}
	return e.Release(ctx, h)
}

// Callers on other shards do not notice, however many wait for the node.
func testStill(t *testing.T, c *ownCluster) {
	e := open(t, c.Addrs...)
	s := c.shardOf("a")
	var here, there []string
	for i := 0; len(here) < 64 || len(there) < 64; i++ {
		key := fmt.Sprint("key", i)
		if c.masterOf(key) == s.master {
			here = append(here, key)
		} else {
			there = append(there, key)
		}
	}
	cycles, stop := load(t, there, func(key string) error {
		return cycleWithin(20*time.Second, e, lockengine.Request{Key: key, Owner: "me:1"}) // the machine may be busy
	})
	testwait.Until(t, "the load runs", func() bool { return cycles.Load() > 1000 })
	c.Stack(t, "pause", c.Node(t, s.master))
	before := cycles.Load()
	var refused atomic.Int64
	together(64, func(i int) {
		for range 3 {
			if err := cycle(e, lockengine.Request{Key: here[i], Owner: "me:1"}); notSent(err) {
				refused.Add(1)
			}
		}
	})
	if refused.Load() == 0 {
		t.Error("nobody was told that the node is not answering")
	}
	if n := cycles.Load() - before; n < 500 {
		t.Errorf("%d cycles on other shards while the node stood still", n)
	}
	testwait.Until(t, "the shard has another master", func() bool { return cycle(e, lockengine.Request{Key: "a", Owner: "me:1"}) == nil })
	if errs := stop(); len(errs) > 0 {
		t.Errorf("%d errors on other shards, the first: %v", len(errs), errs[0])
	}
}

func testMasterDies(t *testing.T, c *ownCluster) {
	e, other := open(t, c.Addrs...), open(t, c.Addrs...)
	s := c.shardOf("a")
	b, _ := watch(t, e, "a")
	c.Stack(t, "kill", c.Node(t, s.master))
	h := lockengine.Request{Key: "a", Owner: "me:1"}
	testwait.Until(t, "the replica takes over", func() bool {
		_, err := other.Acquire(t.Context(), h, ttl)
		return err == nil
	})
	b.wait(t, "messages may have been missed")
	awaitWakeUps(t, other, "a", b)
}

// A process that is done with its locks when their master dies, and ends, leaves
// none of them locked on the replica that takes over.
func testCloseMeanwhile(t *testing.T, c *ownCluster) {
	e, other := open(t, c.Addrs...), open(t, c.Addrs...)
	l := newLocker(t, e, lock.Config{})
	s := c.shardOf("a")
	var leases []*lock.Lease
	for i := 0; len(leases) < 50; i++ {
		if key := fmt.Sprint("key", i); c.masterOf(key) == s.master {
			leases = append(leases, lease(t, l, key))
		}
	}
	c.must(s.master, "WAIT", 1, 5000)
	c.Stack(t, "kill", c.Node(t, s.master))
	together(len(leases), func(i int) {
		if leases[i].Release(t.Context()) == nil {
			t.Error("released by a dead master")
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
	for _, lease := range leases {
		if h, err := other.Inspect(t.Context(), lease.Grant().Key); err != nil || h.Owner != "" {
			t.Errorf("%s is held by %q (%v)", lease.Grant().Key, h.Owner, err)
		}
	}
}

func lease(t *testing.T, l *lock.Locker, key string) *lock.Lease {
	t.Helper()
	lease, err := l.TryAcquire(t.Context(), key)
	if err != nil {
		t.Fatalf("TryAcquire(%q): %v", key, err)
	}
	return lease
}

// awaitWakeUps waits until releases ring the bell: the subscription moves
// within a second or two.
func awaitWakeUps(t *testing.T, e redislock.Engine, key string, b bell) {
	t.Helper()
	h := lockengine.Request{Key: key, Owner: "me:1"}
	for len(b) > 0 {
		<-b
	}
	testwait.Until(t, "a release wakes again", func() bool {
		acquire(t, e, h)
		release(t, e, h)
		return len(b) > 0
	})
	for len(b) > 0 {
		<-b
	}
	acquire(t, e, h)
	release(t, e, h)
	b.wait(t, "released")
}

func testMigration(t *testing.T, c *ownCluster) { migrate(t, c, "b") }

func testMigrationReplicated(t *testing.T, c *ownCluster) {
	migrate(t, c, "c", redislock.Config{Replicas: 1})
}

// migrate moves the slot of a lock to another master while it is used.
func migrate(t *testing.T, c *ownCluster, key string, cfg ...redislock.Config) {
	e, err := redislock.Open(options(c.Addrs...), one(cfg))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	s := c.shardOf(key)
	target := c.otherMaster(s)
	b, _ := watch(t, e, key)
	heldBefore := lockengine.Request{Key: key, Owner: "before:1"}
	acquire(t, e, heldBefore)

	c.must(target, "CLUSTER", "SETSLOT", s.slot, "IMPORTING", c.id(s.master))
	c.must(s.master, "CLUSTER", "SETSLOT", s.slot, "MIGRATING", c.id(target))
	if errs := e.Renew(t.Context(), []lockengine.Request{heldBefore}, ttl); errs[0] != nil {
		t.Errorf("Renew while the key is at the old master: %v", errs[0])
	}
	host, port := split(target)
	c.must(s.master, "MIGRATE", host, port, key, 0, 1000)
	if errs := e.Renew(t.Context(), []lockengine.Request{heldBefore}, ttl); errs[0] != nil {
		t.Errorf("Renew after it has moved: %v", errs[0])
	}
	release(t, e, heldBefore)
	if grant := acquire(t, e, heldBefore); grant.Node != target {
		t.Errorf("granted by %s, want the new master %s", grant.Node, target)
	}
	for len(b) > 0 {
		<-b
	}
	for _, addr := range []string{target, s.master} {
		c.must(addr, "CLUSTER", "SETSLOT", s.slot, "NODE", c.id(target))
	}
	b.wait(t, "the subscription was moved")
	release(t, e, heldBefore)
	awaitWakeUps(t, e, key, b)
}
