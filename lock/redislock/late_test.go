package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
)

// TestAcquireExecutedLate stops a Redis for longer than the ttl with an acquire in
// its socket, which it executes when it goes on. Nobody has that lock, and the
// process that asked for it gets the key at once.
func TestAcquireExecutedLate(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	s := teststack.StartRedis(t, teststack.Volatile)
	client := redis.NewClient(&redis.Options{Addr: s.Addr, PoolSize: 1, MinIdleConns: 1, ContextTimeoutEnabled: true})
	defer client.Close()
	l, err := lock.New(openOn(t, client), lock.Config{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(t.Context())
	lease, err := l.TryAcquire(t.Context(), "k") // the script is known, and the connection stands
	if err != nil {
		t.Fatal(err)
	}
	wantIs(t, lease.Release(t.Context()), nil)

	s.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err = l.TryAcquire(ctx, "k"); err == nil {
		t.Fatal("a stopped Redis has answered")
	}
	<-time.After(ttl + ttl/2) // the Locker has given up to release it
	s.Resume()

	testwait.Until(t, "the late acquire is executed", func() bool { return s.Do("exists", "k").Val() == int64(1) })
	lease, err = l.TryAcquire(t.Context(), "k")
	if err != nil {
		t.Fatalf("nobody has the key: %v", err)
	}
	wantIs(t, lease.Release(t.Context()), nil)
}

// TestLateGrantIsReleased stops a Redis for longer than the ttl under a client that
// waits for its answer nevertheless. The lock that is granted then is released.
func TestLateGrantIsReleased(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	s := teststack.StartRedis(t, teststack.Volatile)
	client := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, ReadTimeout: limit})
	defer client.Close()
	l, err := lock.New(openOn(t, client), lock.Config{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := l.TryAcquire(t.Context(), "k") // the script is known, and the connection stands
	if err != nil {
		t.Fatal(err)
	}
	wantIs(t, lease.Release(t.Context()), nil)

	s.Pause()
	resume := time.AfterFunc(ttl+ttl/4, s.Resume)
	defer resume.Stop()
	_, err = l.TryAcquire(t.Context(), "k")
	wantIs(t, err, lock.ErrLost)
	if err := l.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if n := s.Do("exists", "k").Val(); n != int64(0) {
		t.Error("nobody has the lock, but it exists")
	}
}
