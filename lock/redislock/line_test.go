package redislock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

// inLine returns how many stand in the line of a lock.
func inLine(tb testing.TB, c redis.UniversalClient, key string) int64 {
	tb.Helper()
	n, err := c.ZCard(tb.Context(), "belay_line:{"+key+"}").Result()
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// waiter acquires a lock, reports it and releases it.
func waiter(t *testing.T, e redislock.Engine, key string, got func()) (done chan error) {
	l := newLocker(t, e, lock.Config{})
	done = make(chan error, 1)
	go func() {
		lease, err := l.Acquire(t.Context(), key)
		if err == nil {
			got()
			err = lease.Release(context.Background())
		}
		done <- err
	}()
	return done
}

// Processes get a lock in the order in which they began to wait, unless one comes late for its turn: it
// has 20 ms. On a machine with too much to do the test waits for a time in which none does.
func TestTurns(t *testing.T) {
	testwait.Until(t, "nobody comes late", func() bool {
		got, late := turns(t)
		if !slices.IsSorted(got) && !late || len(got) != 6 {
			t.Fatalf("they got the lock in the order %q", got)
		}
		return slices.IsSorted(got)
	})
}

// turns has six wait for a lock, of whom the last one is another caller of the process that had it. It
// returns the order in which they got it, and whether one came late.
func turns(t *testing.T) (order []string, late bool) {
	key, c := teststack.Key(t, "turns"), cluster(t)
	e := open(t)
	acquire(t, e, lockengine.Request{Key: key, Owner: "first:1"})
	type turn struct {
		who string
		at  time.Time
	}
	got := make(chan turn, 100)
	var all []chan error
	for n := range 6 {
		of := e
		if n < 5 {
			of = open(t)
		}
		all = append(all, waiter(t, of, key, func() { got <- turn{fmt.Sprint("process ", n), time.Now()} }))
		testwait.Until(t, "it stands in line", func() bool { return inLine(t, c, key) == int64(n+1) })
	}
	before := time.Now()
	release(t, e, lockengine.Request{Key: key, Owner: "first:1"})
	for _, done := range all {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	close(got)
	for g := range got {
		order, late = append(order, g.who), late || g.at.Sub(before) >= 20*time.Millisecond
		before = g.at
	}
	return order, late
}

// Nobody is offered a lock that he does not wait for any more.
func TestLeaveLine(t *testing.T) {
	key, c := teststack.Key(t, "leave"), cluster(t)
	e := open(t)
	h := lockengine.Request{Key: key, Owner: "me:1"}
	acquire(t, e, h)
	waiting := newLocker(t, open(t), lock.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := waiting.Acquire(ctx, key)
		done <- err
	}()
	testwait.Until(t, "it stands in line", func() bool { return inLine(t, c, key) == 1 })
	cancel()
	wantIs(t, <-done, context.Canceled)
	testwait.Until(t, "it has left the line", func() bool { return inLine(t, c, key) == 0 })
	release(t, e, h)
	acquire(t, e, lockengine.Request{Key: key, Owner: "me:2"})
}

// A process in line that does not come for its lock delays the others by 20 ms.
func TestOfferExpires(t *testing.T) {
	key, c := teststack.Key(t, "offer"), cluster(t)
	gone, e := open(t), open(t)
	watch(t, gone, key)
	h := lockengine.Request{Key: key, Owner: "me:1"}
	acquire(t, e, h)
	_, err := gone.Acquire(t.Context(), lockengine.Request{Key: key, Owner: "gone:1", Waits: true}, ttl)
	wantHeld(t, err, "me:1")
	release(t, e, h)
	if left, err := c.PTTL(t.Context(), key).Result(); err != nil || left > 20*time.Millisecond {
		t.Errorf("the offer lasts %v (%v), want at most 20 ms", left, err)
	}
	if holder, err := e.Inspect(t.Context(), key); err != nil || holder.Owner != "" {
		t.Errorf("held by %q (%v), want nobody: it is an offer", holder.Owner, err)
	}
	if err := <-waiter(t, e, key, func() {}); err != nil {
		t.Error(err)
	}
}

// A lock that is offered to an engine is granted to any of its callers.
func TestOfferIsTaken(t *testing.T) {
	key := teststack.Key(t, "taken")
	next, e := open(t), open(t)
	watch(t, next, key)
	h := lockengine.Request{Key: key, Owner: "me:1"}
	acquire(t, e, h)
	_, err := next.Acquire(t.Context(), lockengine.Request{Key: key, Owner: "next:1", Waits: true}, ttl)
	wantHeld(t, err, "me:1")
	release(t, e, h)
	acquire(t, next, lockengine.Request{Key: key, Owner: "next:2"})
	_, err = e.Acquire(t.Context(), h, ttl)
	if left := wantHeld(t, err, "next:2").TTL; left < time.Second {
		t.Errorf("it is held for %v, want a ttl", left)
	}
	release(t, next, lockengine.Request{Key: key, Owner: "next:2"})
	acquire(t, e, h)
}

// Clients that stand in no line, as Redisson's, get the lock beside processes that
// always want it: here one that asks 2 ms after each release.
func TestOtherClientsTakeTurns(t *testing.T) {
	key, c := teststack.Key(t, "others"), cluster(t)
	sub := c.SSubscribe(t.Context(), "redisson_lock__channel:{"+key+"}")
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	for range 2 {
		l := newLocker(t, open(t), lock.Config{})
		for range 4 {
			go func() {
				defer func() { ended <- struct{}{} }()
				for ctx.Err() == nil {
					if lease, err := l.Acquire(ctx, key); err == nil {
						<-time.After(time.Millisecond)
						_ = lease.Release(context.Background())
					}
				}
			}()
		}
	}
	other := redis.NewScript(`return redis.call('exists', KEYS[1]) == 0 and redis.call('hset', KEYS[1], 'jvm:1', 1) or 0`)
	until := time.After(limit)
	for got := 0; got < 5; {
		select {
		case <-sub.Channel():
		case <-until:
			t.Fatalf("it got the lock %d times", got)
		}
		<-time.After(2 * time.Millisecond)
		n, err := other.Run(ctx, c, []string{key}).Int()
		if err != nil {
			t.Fatal(err)
		}
		if got += n; n == 1 {
			c.Del(ctx, key)
			c.SPublish(ctx, "redisson_lock__channel:{"+key+"}", "0")
		}
	}
	cancel()
	for range 8 {
		<-ended
	}
}

// After a failover to a server whose clock is behind, who waited before is not passed by
// who comes later: its time in line, which is in the future, becomes that of its next
// attempt.
func TestClockBehind(t *testing.T) {
	key, c := teststack.Key(t, "clock"), cluster(t)
	line := "belay_line:{" + key + "}"
	e, waiting := open(t), open(t)
	watch(t, waiting, key)
	h := lockengine.Request{Key: key, Owner: "me:1"}
	acquire(t, e, h)
	refused := func() {
		_, err := waiting.Acquire(t.Context(), lockengine.Request{Key: key, Owner: "waiting:1", Waits: true}, ttl)
		wantHeld(t, err, "me:1")
	}
	refused()
	ahead := time.Now().Add(time.Hour)
	engines, err := c.ZRange(t.Context(), line, 0, 0).Result()
	if err != nil || len(engines) != 1 {
		t.Fatalf("in line are %v, %v", engines, err)
	}
	for _, who := range append(engines, "*") {
		c.ZAdd(t.Context(), line, redis.Z{Score: float64(ahead.UnixMicro()), Member: who})
	}
	refused()
	if at := c.ZScore(t.Context(), line, engines[0]).Val(); at >= float64(ahead.UnixMicro()) {
		t.Errorf("it stands in line for a time in the future")
	}
	watch(t, e, key)
	watch(t, open(t), key) // which stands in no line
	release(t, e, h)
	if at := c.ZScore(t.Context(), line, "*").Val(); at == 0 || at >= float64(ahead.UnixMicro()) {
		t.Errorf("the turn of others is at %v, want soon", at)
	}
}

// Who may not write the line does without it.
func TestNoRightToTheLine(t *testing.T) {
	s := teststack.StartRedis(t, teststack.Volatile)
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer client.Close()
	s.Must("acl", "setuser", "default", "resetkeys", "~app:k", "~app:belay_done:*")
	e, err := redislock.New(client, redislock.Config{Prefix: "app:"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(t.Context())
	l, other := newLocker(t, e, lock.Config{HandOver: -1}), newLocker(t, e, lock.Config{})
	held := lease(t, l, "k")
	waiting := make(chan error, 1)
	go func() {
		lease, err := other.Acquire(t.Context(), "k")
		if err == nil {
			err = lease.Release(t.Context())
		}
		waiting <- err
	}()
	testwait.Until(t, "it listens", func() bool {
		n, err := client.PubSubNumSub(t.Context(), "redisson_lock__channel:{app:k}").Result()
		return err == nil && n["redisson_lock__channel:{app:k}"] == 1
	})
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	rejected := func() string {
		_, after, _ := strings.Cut(s.Do("info", "commandstats").String(), "cmdstat_evalsha:")
		_, after, _ = strings.Cut(after, "rejected_calls=")
		calls, _, _ := strings.Cut(after, ",")
		return calls
	}
	before := rejected()
	if err := lease(t, l, "k").Release(t.Context()); err != nil {
		t.Error(err)
	}
	if after := rejected(); before == "0" || after != before {
		t.Errorf("%s scripts are rejected, and %s after another cycle: want no more", before, after)
	}
}

// While its slot migrates, a lock that is offered can be taken, and be released.
func testMigrationOffered(t *testing.T, c *ownCluster) {
	const key, line = "e", "belay_line:{e}"
	e, next, last := open(t, c.Addrs...), open(t, c.Addrs...), open(t, c.Addrs...)
	s := c.shardOf(key)
	target := c.otherMaster(s)
	acquire(t, e, lockengine.Request{Key: key, Owner: "me:1"})
	for _, waiting := range []redislock.Engine{next, last} {
		watch(t, waiting, key)
		_, err := waiting.Acquire(t.Context(), lockengine.Request{Key: key, Owner: "waiting:1", Waits: true}, ttl)
		wantHeld(t, err, "me:1")
	}
	first, err := c.client.ZRange(t.Context(), line, 0, 0).Result()
	if err != nil || len(first) != 1 {
		t.Fatalf("first in line is %v, %v", first, err)
	}
	c.must(s.master, "HSET", key, first[0]+":0", 1) // its release, but for the 20 ms
	c.must(s.master, "HDEL", key, "me:1")

	c.must(target, "CLUSTER", "SETSLOT", s.slot, "IMPORTING", c.id(s.master))
	c.must(s.master, "CLUSTER", "SETSLOT", s.slot, "MIGRATING", c.id(target))
	h := lockengine.Request{Key: key, Owner: "next:1", Waits: true}
	acquire(t, next, h)
	release(t, next, h)
	if n := c.must(s.master, "CLUSTER", "COUNTKEYSINSLOT", s.slot); n != "0" {
		t.Errorf("%s keys are at the old master, want none: the line would be in the way of the new one", n)
	}
	if grant := acquire(t, last, h); grant.Node != target {
		t.Errorf("granted by %s, want the new master %s", grant.Node, target)
	}
	for _, addr := range []string{target, s.master} {
		c.must(addr, "CLUSTER", "SETSLOT", s.slot, "NODE", c.id(target))
	}
	release(t, last, h)
}

// While its slot migrates, a lock may be at another node than its line. It is acquired and
// released without that, and the line is kept again afterwards.
func testMigrationLine(t *testing.T, c *ownCluster) {
	const key, line = "f", "belay_line:{f}"
	e, next := open(t, c.Addrs...), openWith(t, options(c.Addrs...), redislock.Config{Replicas: 1})
	s := c.shardOf(key)
	target := c.otherMaster(s)
	h, waiting := lockengine.Request{Key: key, Owner: "me:1"}, lockengine.Request{Key: key, Owner: "next:1", Waits: true}
	refused := func() {
		t.Helper()
		_, err := next.Acquire(t.Context(), waiting, ttl)
		wantHeld(t, err, h.Owner)
	}
	alone := lockengine.Request{Key: "{f}:alone", Owner: "me:1"}
	acquire(t, e, alone)
	acquire(t, e, h)
	watch(t, next, key)
	refused()

	c.must(target, "CLUSTER", "SETSLOT", s.slot, "IMPORTING", c.id(s.master))
	c.must(s.master, "CLUSTER", "SETSLOT", s.slot, "MIGRATING", c.id(target))
	release(t, e, alone) // which has no line
	refused()
	host, port := split(target)
	c.must(s.master, "MIGRATE", host, port, key, 0, 1000)
	refused()
	release(t, e, h)
	if grant := acquire(t, next, waiting); grant.Node != target {
		t.Errorf("granted by %s, want the new master %s", grant.Node, target)
	}
	release(t, next, waiting)
	c.must(s.master, "MIGRATE", host, port, line, 0, 1000)
	for _, addr := range []string{target, s.master} {
		c.must(addr, "CLUSTER", "SETSLOT", s.slot, "NODE", c.id(target))
	}
	c.must(target, "DEL", line)
	acquire(t, e, h)
	testwait.Until(t, "it stands in line", func() bool {
		refused()
		return c.must(target, "ZCARD", line) == "1"
	})
	release(t, e, h)
}

// An engine that is not told of releases would miss its turns: it stands in no line.
func TestNoRightToChannels(t *testing.T) {
	s := teststack.StartRedis(t, teststack.Volatile)
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer client.Close()
	s.Must("acl", "setuser", "default", "resetchannels")
	e, err := redislock.New(client, redislock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(t.Context())
	h := lockengine.Request{Key: "k", Owner: "me:1"}
	acquire(t, e, h)
	_, err = e.Acquire(t.Context(), lockengine.Request{Key: "k", Owner: "waiting:1", Waits: true}, ttl)
	wantHeld(t, err, "me:1")
	if n := inLine(t, client, "k"); n != 0 {
		t.Errorf("%d stand in line, want none", n)
	}
	release(t, e, h)
	acquire(t, e, h)
}
