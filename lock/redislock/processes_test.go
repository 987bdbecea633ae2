package redislock_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/lockhistory"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/locktest"
)

// A server that is killed and started again has the locks that it granted, if it saves each.
// If it stands still, or its answers are lost, for longer than they last, nobody believes in
// them any more.
func TestHistory(t *testing.T) {
	t.Parallel()
	server := teststack.StartRedis(t, "appendonly yes\nappendfsync always\n")
	link := locktest.NewLink(t, server.Addr)
	lockhistory.Test(t, lockhistory.Setup{
		Where:  "redis://" + link.Addr,
		Key:    func(name string) string { return name },
		Engine: openURL(t, "redis://"+link.Addr),
		Breaks: []lockhistory.Break{
			{Name: "killed", Do: func(*testing.T) {
				server.Kill()
				server.Start()
			}},
			lockhistory.Outage("paused", func(*testing.T) func() {
				server.Pause()
				return server.Resume
			}),
			lockhistory.CutOff("cut off", link),
		},
	})
}

// Many goroutines in several processes, few locks, on all shards of a cluster.
func TestHistoryOnCluster(t *testing.T) {
	t.Parallel()
	lockhistory.Test(t, lockhistory.Setup{
		Where:  clusterURL(teststack.Redis(t)),
		Key:    func(name string) string { return teststack.Key(t, name) },
		Engine: open(t),
	})
}

// A master is killed whose replica has not got its latest grants. Holds may
// overlap then, but only those that were lost with it. No caller on another shard
// loses a lock, and no lock stays with one who is done.
func TestHistoryOfFailover(t *testing.T) {
	t.Parallel()
	c := startCluster(t, "history")
	dead := c.shardOf("a").master
	var here, there []string
	for i := 0; len(here) < 3 || len(there) < 4; i++ {
		switch key := fmt.Sprint("key", i); {
		case c.masterOf(key) == dead && len(here) < 3:
			here = append(here, key)
		case c.masterOf(key) != dead && len(there) < 4:
			there = append(there, key)
		}
	}
	const ttl = 6 * time.Second
	// Its release is lost with the master, too: it is locked until this has passed.
	l := newLocker(t, open(t, c.Addrs...), lock.Config{TTL: ttl, RequestTimeout: ttl / 2})
	late := lease(t, l, here[2])
	keepers := lockhistory.StartAll(t, lockhistory.Job{Where: clusterURL(c.Addrs), Keys: here[2:], Workers: 1, TTL: ttl})
	long := lockhistory.StartAll(t, lockhistory.Job{Where: clusterURL(c.Addrs), Keys: here[:2], Workers: 8, Hold: 300 * time.Millisecond, TTL: ttl})
	short := lockhistory.StartAll(t, lockhistory.Job{Where: clusterURL(c.Addrs), Keys: there, Workers: 16, Hold: 4 * time.Millisecond, TTL: ttl})
	spans := lockhistory.Observe(t, short, 200)
	spans = append(spans, lockhistory.Observe(t, long, 2)...)

	e := open(t, c.Addrs...)
	orphan := lockengine.Request{Key: "a", Owner: "dead:1"} // of a process that has died
	if _, err := e.Acquire(t.Context(), orphan, ttl); err != nil {
		t.Fatal(err)
	}
	replica := c.replicaOf(dead)
	testwait.Until(t, "they wait", func() bool { return subscribers(t, c.client, here[2]) == int64(len(keepers)) })
	c.Stack(t, "pause", c.Node(t, replica))
	c.must(dead, "CLIENT", "KILL", "TYPE", "replica") // nor finds in its socket when it goes on
	if err := late.Release(t.Context()); err != nil { // meanwhile somebody gets a lock that it does not see
		t.Fatal(err)
	}
	testwait.Until(t, "granted", func() bool { return len(keepers[0].Lines)+len(keepers[1].Lines)+len(keepers[2].Lines) > 0 })
	died := lockhistory.Fault{Node: dead, Begin: lockhistory.Now()}
	c.Stack(t, "kill", c.Node(t, dead))
	died.End = lockhistory.Now()
	c.Stack(t, "resume", c.Node(t, replica))

	spans = append(spans, lockhistory.Observe(t, long, 3)...) // they go on
	if _, err := newLocker(t, e, lock.Config{}).Acquire(t.Context(), orphan.Key); err != nil {
		t.Errorf("Acquire of a dead holder's lock: %v", err)
	}
	for _, child := range slices.Concat(keepers, long, short) {
		spans = append(spans, child.Finish()...)
	}
	for _, key := range there { // their processes have ended
		if h, err := e.Inspect(t.Context(), key); err != nil || h.Owner != "" {
			t.Errorf("%s is held by %+v (%v)", key, h, err)
		}
	}
	for _, key := range here { // or soon: a release may be lost as a grant may
		free(t, e, key)
	}
	for _, wrong := range lockhistory.Judge(spans, died) {
		t.Error(wrong)
	}
	for _, s := range spans {
		if slices.Contains(there, s.Key) && s.End == lockhistory.Lost {
			t.Errorf("lost on another shard: %+v", s)
		}
	}
	if !slices.ContainsFunc(spans, func(s lockhistory.Span) bool { return s.End == lockhistory.Lost && s.Key == here[2] }) {
		t.Error("the lock that the replica did not know of was not lost")
	}
	report(t, spans, here, died)
}

// report prints what a failover costs.
func report(t *testing.T, spans []lockhistory.Span, here []string, f lockhistory.Fault) {
	t.Helper()
	killed := f.End
	const window = int64(2 * time.Second)
	var lostHolds, before, after int
	back := int64(0)
	for _, s := range spans {
		if s.End == lockhistory.Lost {
			lostHolds++
		}
		switch touched := slices.Contains(here, s.Key); {
		case touched && s.Owner != "" && s.Node != f.Node && s.Got > killed && (back == 0 || s.Got < back):
			back = s.Got
		case !touched && s.Got > killed-window && s.Got <= killed:
			before++
		case !touched && s.Got > killed && s.Got <= killed+window:
			after++
		}
	}
	t.Logf("%d holds, %d lost, %d overlaps", len(spans), lostHolds, lockhistory.Overlaps(spans))
	t.Logf("other shards: %d holds in the %v before, %d after", before, time.Duration(window), after)
	t.Logf("first grant on the shard of the dead master after %v", time.Duration(back-killed).Round(time.Millisecond))
}
