package interop_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

const (
	ttl   = 2 * time.Second  // of Go's locks and of Redisson's watchdog
	limit = 60 * time.Second // of anything that a check waits for
	lease = "60000"          // milliseconds of Java's locks that no watchdog renews
)

// stage is what the checks share.
type stage struct {
	addrs   []string
	cluster *redis.ClusterClient
	java    *peer
	engine  redislock.Engine
	locker  *lock.Locker
}

func setUp(t *testing.T) *stage {
	t.Helper()
	addrs := teststack.Redis(t)
	program := build(t)
	s := &stage{addrs: addrs, cluster: redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})}
	t.Cleanup(func() { s.cluster.Close() })
	s.engine = newEngine(t, addrs)
	s.locker = newLocker(t, s.engine, ttl)
	s.java = start(t, program, addrs)
	return s
}

func newEngine(t *testing.T, addrs []string) redislock.Engine {
	t.Helper()
	// The scenes compare scripts, not the reads with which the server is asked for reports.
	engine, err := redislock.Open(&redis.UniversalOptions{Addrs: addrs}, redislock.Config{NoTracking: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(context.Background()); err != nil {
			t.Errorf("close the engine: %v", err)
		}
	})
	return engine
}

func newLocker(t *testing.T, engine lockengine.Engine, ttl time.Duration) *lock.Locker {
	t.Helper()
	locker, err := lock.New(engine, lock.Config{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := locker.Close(ctx); err != nil {
			t.Errorf("close the locker: %v", err)
		}
	})
	return locker
}

// thread returns a Java thread of this test's own.
func (s *stage) thread(t *testing.T, name string) *thread {
	t.Helper()
	return s.java.thread(t.Name() + "/" + name)
}

// acquire takes a lock that is free or becomes free.
func acquire(t *testing.T, l *lock.Locker, key string) *lock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	lease, err := l.Acquire(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func release(t *testing.T, lease *lock.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// wantHeld checks that the lock was refused because owner has it.
func wantHeld(t *testing.T, err error, owner string) {
	t.Helper()
	var held *lockengine.HeldError
	if !errors.As(err, &held) || held.Holder.Owner != owner {
		t.Fatalf("got %v, want a *lockengine.HeldError that names %s", err, owner)
	}
}

// stored returns the lock in Redis: its type, its fields, what is left of it.
func (s *stage) stored(t *testing.T, key string) (kind string, fields map[string]string, left time.Duration) {
	t.Helper()
	kind, err1 := s.cluster.Type(t.Context(), key).Result()
	fields, err2 := s.cluster.HGetAll(t.Context(), key).Result()
	left, err3 := s.cluster.PTTL(t.Context(), key).Result()
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return kind, fields, left
}

// channel is where the release of a lock is told.
func channel(key string) string {
	if strings.Contains(key, "{") {
		return "redisson_lock__channel:" + key
	}
	return "redisson_lock__channel:{" + key + "}"
}

// subscribers counts those who listen on a channel, on all nodes.
func (s *stage) subscribers(t *testing.T, channel string) (sharded, plain int64) {
	t.Helper()
	var onShards, onBus atomic.Int64
	err := s.cluster.ForEachShard(t.Context(), func(ctx context.Context, node *redis.Client) error {
		n, err1 := node.PubSubShardNumSub(ctx, channel).Result()
		onShards.Add(n[channel])
		n, err2 := node.PubSubNumSub(ctx, channel).Result()
		onBus.Add(n[channel])
		return errors.Join(err1, err2)
	})
	if err != nil {
		t.Fatal(err)
	}
	return onShards.Load(), onBus.Load()
}

// masters returns the addresses of the nodes that serve slots.
func (s *stage) masters(t *testing.T) []string {
	t.Helper()
	var mu sync.Mutex
	var addrs []string
	err := s.cluster.ForEachMaster(t.Context(), func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		addrs = append(addrs, node.Options().Addr)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return addrs
}
