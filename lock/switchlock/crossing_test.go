package switchlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/lock/switchlock"
)

// A process that still needs both engines gets a lock beside processes that need the new one alone,
// always want the lock, and pass it on in the line of that engine.
func TestCrossingWaiterGetsItsTurn(t *testing.T) {
	t.Parallel()
	const turns, limit = 3, 20 * time.Second
	old, next := startRedis(t).Addr, startRedis(t).Addr
	connect := func(addr string) lockengine.Engine {
		e, err := redislock.Open(&redis.UniversalOptions{Addrs: []string{addr}}, redislock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close(context.Background()) })
		return e
	}
	busy, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	defer others.Wait()
	defer stop()
	for range 2 {
		l := newLocker(t, connect(next), time.Minute)
		others.Go(func() {
			for busy.Err() == nil {
				if lease, err := l.Acquire(busy, "k"); err == nil {
					<-time.After(20 * time.Millisecond)
					_ = lease.Release(context.Background())
				}
			}
		})
	}
	crossing := newLocker(t, open(t, switchlock.Config{
		Source: &store{record: unending()}, First: "old",
		Engines: map[string]lockengine.Engine{"old": connect(old), "new": connect(next)},
	}), time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for n := range turns {
		lease, err := crossing.Acquire(ctx, "k")
		if err != nil {
			t.Fatalf("after %d turns: %v", n, err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
