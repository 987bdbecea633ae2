package redislock_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
)

// startChildren starts processes that want the same locks.
func startChildren(t *testing.T, j job) (children []*child) {
	t.Helper()
	for range 3 {
		children = append(children, startChild(t, j))
	}
	return children
}

// observe waits until each child has printed n more spans, and returns all of
// them.
func observe(t *testing.T, children []*child, n int) (spans []span) {
	t.Helper()
	for _, c := range children {
		for range n {
			select {
			case s, ok := <-c.lines:
				if !ok {
					t.Fatal("a child has ended")
				}
				spans = append(spans, s)
			case <-time.After(3 * limit):
				t.Fatal("a child gets no lock any more")
			}
		}
	}
	return spans
}

// Many goroutines in several processes, few locks, no faults: to all of them
// together each lock is a mutex.
func TestHistory(t *testing.T) {
	var keys []string
	for i := range 4 {
		keys = append(keys, teststack.Key(t, fmt.Sprint("history", i)))
	}
	children := startChildren(t, job{Addrs: teststack.Redis(t), Keys: keys, Workers: 16, Hold: 2 * time.Millisecond, TTL: ttl})
	spans := observe(t, children, 300)
	for _, c := range children {
		spans = append(spans, c.finish()...)
	}
	for _, s := range spans {
		if s.End != released {
			t.Errorf("without a fault: %+v", s)
		}
	}
	for _, wrong := range judge(spans, fault{}) {
		t.Error(wrong)
	}
	t.Logf("%d holds", len(spans))
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
	l := newLocker(t, open(t, c.Addrs...), lock.Config{TTL: time.Second})
	late := lease(t, l, here[2])
	keepers := startChildren(t, job{Addrs: c.Addrs, Keys: here[2:], Workers: 1, TTL: ttl})
	long := startChildren(t, job{Addrs: c.Addrs, Keys: here[:2], Workers: 8, Hold: 300 * time.Millisecond, TTL: ttl})
	short := startChildren(t, job{Addrs: c.Addrs, Keys: there, Workers: 16, Hold: 4 * time.Millisecond, TTL: ttl})
	spans := observe(t, short, 200)
	spans = append(spans, observe(t, long, 2)...)

	e := open(t, c.Addrs...)
	orphan := lock.Request{Key: "a", Owner: "dead:1"} // of a process that has died
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
	testwait.Until(t, "granted", func() bool { return len(keepers[0].lines)+len(keepers[1].lines)+len(keepers[2].lines) > 0 })
	c.Stack(t, "kill", c.Node(t, dead))
	killed := mono()
	c.Stack(t, "resume", c.Node(t, replica))

	spans = append(spans, observe(t, long, 3)...) // they go on
	if _, err := newLocker(t, e, lock.Config{}).Acquire(t.Context(), orphan.Key); err != nil {
		t.Errorf("Acquire of a dead holder's lock: %v", err)
	}
	for _, child := range slices.Concat(keepers, long, short) {
		spans = append(spans, child.finish()...)
	}
	spans = slices.DeleteFunc(spans, func(s span) bool { return s.Owner == "" && s.Err == "" })
	for _, key := range there { // their processes have ended
		if h, err := e.Inspect(t.Context(), key); err != nil || h.Owner != "" {
			t.Errorf("%s is held by %+v (%v)", key, h, err)
		}
	}
	for _, key := range here { // or soon: a release may be lost as a grant may
		free(t, e, key)
	}
	for _, wrong := range judge(spans, fault{dead, killed}) {
		t.Error(wrong)
	}
	for _, s := range spans {
		if slices.Contains(there, s.Key) && s.End == lost {
			t.Errorf("lost on another shard: %+v", s)
		}
	}
	if !slices.ContainsFunc(spans, func(s span) bool { return s.End == lost && s.Key == here[2] }) {
		t.Error("the lock that the replica did not know of was not lost")
	}
	report(t, spans, here, fault{dead, killed})
}

// report prints what a failover costs.
func report(t *testing.T, spans []span, here []string, f fault) {
	t.Helper()
	killed := f.at
	const window = int64(2 * time.Second)
	var lostHolds, before, after int
	back := int64(0)
	for _, s := range spans {
		if s.End == lost {
			lostHolds++
		}
		switch touched := slices.Contains(here, s.Key); {
		case touched && s.Owner != "" && s.Node != f.node && s.Got > killed && (back == 0 || s.Got < back):
			back = s.Got
		case !touched && s.Got > killed-window && s.Got <= killed:
			before++
		case !touched && s.Got > killed && s.Got <= killed+window:
			after++
		}
	}
	t.Logf("%d holds, %d lost, %d overlaps", len(spans), lostHolds, overlaps(spans))
	t.Logf("other shards: %d holds in the %v before, %d after", before, time.Duration(window), after)
	t.Logf("first grant on the shard of the dead master after %v", time.Duration(back-killed).Round(time.Millisecond))
}

// A holder stands still until its lock has run out and another process has it.
// It does not believe in it for a moment when it goes on.
func TestPausedHolder(t *testing.T) {
	key := teststack.Key(t, "paused")
	l := newLocker(t, open(t), lock.Config{})
	holder := startChild(t, job{Addrs: teststack.Redis(t), Keys: []string{key}, Workers: 1, TTL: time.Second})
	if s := <-holder.lines; s.Key != "held" {
		t.Fatalf("the child says %+v", s)
	}
	if err := holder.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	next, err := l.Acquire(t.Context(), key)
	got := mono()
	if cont := holder.Process.Signal(syscall.SIGCONT); cont != nil {
		t.Fatal(cont)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := <-holder.lines
	if s.End != lost || s.Believed >= s.Deadline || s.Believed >= got {
		t.Errorf("another got the lock at %d, and the paused holder: %+v", got, s)
	}
	if err := next.Err(); err != nil {
		t.Errorf("the other's lease: %v", err)
	}
	_ = holder.stdin.Close() // it waits for the lock, and gives up
	if err := next.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}
