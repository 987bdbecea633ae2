package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

// TestSentinelUnderLoad: the master stands still, Sentinel promotes its replica, and the
// old one comes back as a replica. What a replica has stays locked, callers get through to
// the new master, and nobody takes the old one for it.
func TestSentinelUnderLoad(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	e := openSentinel(t, p.sentinels)
	held := lockengine.Request{Key: "held", Owner: "they:1"}
	if _, err := openSentinel(t, p.sentinels, redislock.Config{Replicas: 1}).Acquire(t.Context(), held, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	b, _ := watch(t, e, "waited for")

	var refused atomic.Int64
	cycles, stop := load(t, names(64), func(key string) error {
		err := cycle(e, lockengine.Request{Key: key, Owner: "me:1"})
		if notSent(err) {
			refused.Add(1)
		}
		return otherThan(err, lockengine.ErrNotSent, lockengine.ErrNoAnswer, context.DeadlineExceeded, lockengine.ErrNotHeld)
	})
	testwait.Until(t, "the load runs", func() bool { return cycles.Load() > 1000 })
	p.master.Pause()
	testwait.Until(t, "the replica takes over", func() bool {
		role, err := p.replica.Do("role").Slice()
		return err == nil && role[0] == "master"
	})
	testwait.Until(t, "the engine has found it", func() bool {
		return cycle(e, lockengine.Request{Key: "found", Owner: "me:1"}) == nil && e.Locate("found").Node == p.replica.Addr
	})
	p.master.Resume()
	testwait.Until(t, "the old master follows", func() bool {
		role, err := p.master.Do("role").Slice()
		return err == nil && role[0] == "slave"
	})
	before := cycles.Load()
	testwait.Until(t, "the load goes on", func() bool { return cycles.Load() > before+1000 })
	for _, err := range stop() {
		t.Error(err)
	}
	if refused.Load() == 0 {
		t.Error("nobody was told that the node is not answering")
	}
	_, err := e.Acquire(t.Context(), lockengine.Request{Key: held.Key, Owner: "me:1"}, ttl)
	wantHeld(t, err, held.Owner)
	if owner := p.replica.Do("hkeys", held.Key).Val(); fmt.Sprint(owner) != "[they:1]" {
		t.Errorf("owner on the new master is %v", owner)
	}
	b.wait(t, "messages may have been missed")
	awaitWakeUps(t, e, "waited for", b)
}

// TestSilentSentinel: the Sentinel that a client asks stands still, as when its machine is
// gone. The others are asked within seconds, and nobody is told that a request may have been
// executed.
func TestSilentSentinel(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	e := openURL(t, "redis+sentinel://"+strings.Join(p.sentinels, ",")+"/locks?client_name=asks")
	acquire(t, e, hold)
	for _, s := range p.watchers {
		if strings.Contains(fmt.Sprint(s.Do("client", "list").Val()), "name=asks") {
			s.Pause()
		}
	}
	p.master.Do("client", "kill", "type", "normal")
	start := time.Now()
	testwait.Until(t, "another Sentinel is asked", func() bool {
		err := e.Release(t.Context(), hold)
		if err != nil && !errors.Is(err, lockengine.ErrNotSent) && time.Since(start) > 500*time.Millisecond { // else on an old connection
			t.Error(err)
		}
		return err == nil || errors.Is(err, lockengine.ErrNotHeld)
	})
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestSingleUnderLoad: a server on its own stands still, goes on, and is started again
// without its locks.
func TestSingleUnderLoad(t *testing.T) {
	t.Parallel()
	s := teststack.StartRedis(t, teststack.Volatile)
	e := openURL(t, "redis://"+s.Addr)
	b, _ := watch(t, e, "waited for")
	acquire(t, e, hold)

	cycles, stop := load(t, names(64), func(key string) error {
		return otherThan(cycle(e, lockengine.Request{Key: key, Owner: "me:1"}), lockengine.ErrNotSent, lockengine.ErrNoAnswer, context.DeadlineExceeded, lockengine.ErrNotHeld)
	})
	testwait.Until(t, "the load runs", func() bool { return cycles.Load() > 1000 })
	s.Pause()
	testwait.Until(t, "callers are told that it does not answer", func() bool { return notSent(cycle(e, lockengine.Request{Key: "a", Owner: "me:1"})) })
	s.Resume()
	testwait.Until(t, "the server is found again", func() bool { return cycle(e, lockengine.Request{Key: "a", Owner: "me:1"}) == nil })
	_, err := e.Acquire(t.Context(), lockengine.Request{Key: hold.Key, Owner: "they:1"}, ttl)
	wantHeld(t, err, hold.Owner)

	s.Kill()
	s.Start()
	testwait.Until(t, "the new one is found", func() bool { return cycle(e, lockengine.Request{Key: "a", Owner: "me:1"}) == nil })
	wantIs(t, e.Release(t.Context(), hold), lockengine.ErrNotHeld)
	b.wait(t, "messages may have been missed")
	awaitWakeUps(t, e, "waited for", b)
	before := cycles.Load()
	testwait.Until(t, "the load goes on", func() bool { return cycles.Load() > before+1000 })
	for _, err := range stop() {
		t.Error(err)
	}
}

// otherThan returns err if it matches none of the targets.
func otherThan(err error, targets ...error) error {
	for _, target := range targets {
		if errors.Is(err, target) {
			return nil
		}
	}
	return err
}

func names(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprint("key", i))
	}
	return keys
}
