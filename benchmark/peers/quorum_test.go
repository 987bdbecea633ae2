package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncpool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/quorumlock"
	"github.com/belaygo/belay/lock/redislock"
)

// Each caller acquires and releases a lock of its own: on a single Redis server, on five by
// lock/quorumlock, and on these five by redsync.
func BenchmarkQuorum(b *testing.B) {
	addrs := make([]string, 5)
	for i := range addrs {
		addrs[i] = singleServer(b)
	}
	ways := []struct {
		name  string
		cycle func(b *testing.B) func(ctx context.Context, key, owner string) error
	}{
		{"one server", func(b *testing.B) func(context.Context, string, string) error {
			b.Helper()
			return engineCycle(openSingle(b, addrs[0]))
		}},
		{"quorumlock", func(b *testing.B) func(context.Context, string, string) error {
			b.Helper()
			var nodes []lock.Engine
			for _, addr := range addrs {
				nodes = append(nodes, openSingle(b, addr))
			}
			e, err := quorumlock.New(nodes, quorumlock.Config{Durable: true}) // the servers have just been started
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = e.Close(context.Background()) })
			return engineCycle(e)
		}},
		{"redsync", func(b *testing.B) func(context.Context, string, string) error {
			b.Helper()
			return redsyncCycle(b, addrs)
		}},
	}
	for _, callers := range []int{1, 64} {
		for _, way := range ways {
			b.Run(fmt.Sprintf("%s/c=%d", way.name, callers), func(b *testing.B) {
				cycles(b, callers, way.cycle(b))
			})
		}
	}
}

func openSingle(b *testing.B, addr string) lock.Engine {
	b.Helper()
	e, err := redislock.Open(&redis.UniversalOptions{Addrs: []string{addr}}, redislock.Config{AskStart: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

func engineCycle(e lock.Engine) func(ctx context.Context, key, owner string) error {
	return func(ctx context.Context, key, owner string) error {
		r := lock.Request{Key: key, Owner: owner}
		if _, err := e.Acquire(ctx, r, ttl); err != nil {
			return err
		}
		return e.Release(ctx, r)
	}
}

func redsyncCycle(b *testing.B, addrs []string) func(ctx context.Context, key, owner string) error {
	b.Helper()
	var pools []redsyncpool.Pool
	for _, addr := range addrs {
		client := redis.NewClient(&redis.Options{Addr: addr})
		b.Cleanup(func() { _ = client.Close() })
		pools = append(pools, goredis.NewPool(client))
	}
	sync := redsync.New(pools...)
	return func(ctx context.Context, key, _ string) error {
		m := sync.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(1))
		if err := m.LockContext(ctx); err != nil {
			return err
		}
		ok, err := m.UnlockContext(ctx)
		if err == nil && !ok {
			err = errors.New("not released")
		}
		return err
	}
}

func cycles(b *testing.B, callers int, cycle func(ctx context.Context, key, owner string) error) {
	b.Helper()
	var begun atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	start := time.Now()
	for i := range callers {
		wg.Go(func() {
			key, owner := fmt.Sprint("cycle", i), fmt.Sprint("me:", i)
			for begun.Add(1) <= int64(b.N) {
				if err := cycle(b.Context(), key, owner); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "cycles/s")
}

// singleServer starts a redis-server that saves nothing, and returns its address.
func singleServer(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	l.Close()
	server := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", b.TempDir(), "--save", "", "--appendonly", "no")
	if err := server.Start(); err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	for end := time.Now().Add(10 * time.Second); client.Ping(b.Context()).Err() != nil; <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatal("redis-server does not answer")
		}
	}
	return addr
}
