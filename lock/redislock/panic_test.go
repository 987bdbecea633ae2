package redislock_test

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
)

// A panicky hook panics at scripts while it is set.
type panicky struct{ atomic.Bool }

func (*panicky) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p *panicky) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		p.check()
		return next(ctx, cmd)
	}
}

func (p *panicky) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		p.check()
		return next(ctx, cmds)
	}
}

func (p *panicky) check() {
	if p.Load() {
		panic("a hook")
	}
}

// A client's hook that panics costs the requests of its callers, who may recover, and nothing else:
// the process lives, and the locks are cared for when it does no more.
func TestPanicOfAHook(t *testing.T) {
	s, hook := teststack.StartRedis(t, teststack.Volatile), new(panicky)
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer client.Close()
	client.AddHook(hook)
	l := newLocker(t, openOn(t, client), lock.Config{TTL: 3 * time.Second})
	lease, err := l.Acquire(t.Context(), "held")
	if err != nil {
		t.Fatal(err)
	}
	hook.Store(true)
	func() {
		defer func() { _ = recover() }() // as net/http does
		_, _ = l.TryAcquire(t.Context(), "other")
		t.Error("the caller learns nothing")
	}()
	<-time.After(1500 * time.Millisecond) // the next renewal panics, and releases of the orphan do
	hook.Store(false)
	testwait.Until(t, "the other lock is free", func() bool {
		other, err := l.TryAcquire(t.Context(), "other")
		return err == nil && other.Release(t.Context()) == nil
	})
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// A panickyDial hook panics at dials while it is set.
type panickyDial struct {
	atomic.Bool
	dials atomic.Int32 // that panicked
}

func (p *panickyDial) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if p.Load() {
			p.dials.Add(1)
			panic("a hook")
		}
		return next(ctx, network, addr)
	}
}

func (*panickyDial) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (*panickyDial) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A hook that panics when the connection of subscriptions is dialled does not end the process, and
// locks are watched when it panics no more.
func TestPanicOfADial(t *testing.T) {
	s, hook := teststack.StartRedis(t, teststack.Volatile), new(panickyDial)
	client := redis.NewClient(&redis.Options{Addr: s.Addr, MinIdleConns: 1})
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err != nil { // so requests need no dial
		t.Fatal(err)
	}
	client.AddHook(hook)
	e := openOn(t, client)
	hook.Store(true)
	watched := make(chan struct{})
	go func() {
		for {
			stop, err := e.Watch(t.Context(), "k", func() {})
			if err == nil {
				stop()
				break
			}
			if t.Context().Err() != nil {
				break
			}
		}
		close(watched)
	}()
	testwait.Until(t, "ten dials have panicked", func() bool { return hook.dials.Load() >= 10 })
	hook.Store(false)
	<-watched
}

// A panickyLog is a slog.Handler that panics at each record.
type panickyLog struct {
	slog.Handler
	records atomic.Int32
}

func (h *panickyLog) Enabled(context.Context, slog.Level) bool {
	h.records.Add(1)
	panic("a logger")
}

// A logger that panics at the warning that a server refuses to track locks does not end the process.
func TestPanicOfALogger(t *testing.T) {
	t.Parallel()
	s, h := teststack.StartRedis(t, teststack.Volatile), new(panickyLog)
	s.Must("acl", "setuser", "plain", "on", "nopass", "~*", "&*", "+@all", "-client|tracking")
	e := openWith(t, &redis.UniversalOptions{Addrs: []string{s.Addr}, Username: "plain", Password: "x"},
		redislock.Config{Logger: slog.New(h)})
	held := lease(t, newLocker(t, e, lock.Config{}), "a")
	testwait.Until(t, "the refusal is to be logged", func() bool { return h.records.Load() > 0 })
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
