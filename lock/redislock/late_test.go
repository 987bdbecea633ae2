package redislock_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
)

// TestAcquireExecutedLate stops a Redis for longer than the ttl with an acquire in
// its socket, which it executes when it goes on. Nobody has that lock, and the
// process that asked for it gets the key at once.
func TestAcquireExecutedLate(t *testing.T) {
	const ttl = 2 * time.Second
	s := startServer(t, volatile)
	client := redis.NewClient(&redis.Options{Addr: s.addr, PoolSize: 1, MinIdleConns: 1, ContextTimeoutEnabled: true})
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

	s.signal(syscall.SIGSTOP)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err = l.TryAcquire(ctx, "k"); err == nil {
		t.Fatal("a stopped Redis has answered")
	}
	<-time.After(ttl + ttl/2) // the Locker has given up to release it
	s.signal(syscall.SIGCONT)

	testwait.Until(t, "the late acquire is executed", func() bool { return s.do("exists", "k").Val() == int64(1) })
	lease, err = l.TryAcquire(t.Context(), "k")
	if err != nil {
		t.Fatalf("nobody has the key: %v", err)
	}
	wantIs(t, lease.Release(t.Context()), nil)
}

func (s *server) signal(sig syscall.Signal) {
	s.tb.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.tb.Fatal(err)
	}
}
