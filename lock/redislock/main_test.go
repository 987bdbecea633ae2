package redislock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/belaygo/belay/internal/lockhistory"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

func TestMain(m *testing.M) {
	lockhistory.Main(func(where string) (lockengine.Engine, func(), error) {
		opts, err := redislock.ParseURL(where)
		if err != nil {
			return nil, nil, err
		}
		e, err := redislock.Open(opts, redislock.Config{})
		return e, func() { _ = e.Close(context.Background()) }, err
	})
	const pkg = "github.com/redis/go-redis/v9."
	goleak.VerifyTestMain(m,
		// A closed client of NewFailoverClusterClient goes on listening to
		// Sentinel, and waits for a Sentinel that it has asked.
		goleak.IgnoreAnyFunction(pkg+"(*sentinelFailover).listen"),
		goleak.IgnoreAnyFunction(pkg+"(*sentinelFailover).MasterAddr.func1"),
		goleak.IgnoreAnyFunction(pkg+"(*channel).initHealthCheck.func1"),
		goleak.IgnoreAnyFunction(pkg+"(*channel).initMsgChan.func1"),
		// A slot map that was being reloaded when its client was closed.
		goleak.IgnoreAnyFunction(pkg+"(*clusterStateHolder).LazyReload.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).queuedNewConn.func2"),
		// A closed client that could not dial sleeps for a second before it looks.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"),
	)
}

const (
	ttl   = 20 * time.Second
	limit = 10 * time.Second // of anything that a test waits for
)

// open returns an engine on the cluster of the stack, or on other addresses.
func open(tb testing.TB, addrs ...string) redislock.Engine {
	tb.Helper()
	if len(addrs) == 0 {
		addrs = teststack.Redis(tb)
	}
	return openWith(tb, &redis.UniversalOptions{Addrs: addrs, IsClusterMode: true})
}

func openWith(tb testing.TB, opts *redis.UniversalOptions, cfg ...redislock.Config) redislock.Engine {
	tb.Helper()
	e, err := redislock.Open(opts, one(cfg))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

func clusterURL(addrs []string) string { return "redis+cluster://" + strings.Join(addrs, ",") }

func openURL(tb testing.TB, url string, cfg ...redislock.Config) redislock.Engine {
	tb.Helper()
	opts, err := redislock.ParseURL(url)
	if err != nil {
		tb.Fatal(err)
	}
	e, err := redislock.Open(opts, one(cfg))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

// one returns the only Config, or the zero one.
func one(cfg []redislock.Config) redislock.Config {
	if len(cfg) == 0 {
		return redislock.Config{}
	}
	return cfg[0]
}

// cluster returns a client for a look at what is really there.
func cluster(tb testing.TB) *redis.ClusterClient {
	tb.Helper()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: teststack.Redis(tb)})
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func newLocker(tb testing.TB, engine lockengine.Engine, cfg lock.Config) *lock.Locker {
	tb.Helper()
	if cfg.Logger == nil { // what is lost here is lost on purpose
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	l, err := lock.New(engine, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := l.Close(ctx); err != nil && !errors.Is(err, context.Canceled) {
			tb.Errorf("Close: %v", err)
		}
	})
	return l
}

func acquire(tb testing.TB, e redislock.Engine, h lockengine.Request) lockengine.Grant {
	tb.Helper()
	grant, err := e.Acquire(tb.Context(), h, ttl)
	if err != nil {
		tb.Fatalf("Acquire: %v", err)
	}
	return grant
}

func release(tb testing.TB, e redislock.Engine, h lockengine.Request) {
	tb.Helper()
	if err := e.Release(tb.Context(), h); err != nil {
		tb.Errorf("Release: %v", err)
	}
}

func wantHeld(tb testing.TB, err error, owner string) lockengine.Holder {
	tb.Helper()
	var held *lockengine.HeldError
	if !errors.As(err, &held) {
		tb.Fatalf("error is %v, want a *HeldError", err)
	}
	if held.Holder.Owner != owner {
		tb.Errorf("holder is %q, want %q", held.Holder.Owner, owner)
	}
	return held.Holder
}

func wantIs(tb testing.TB, err, target error) {
	tb.Helper()
	if !errors.Is(err, target) {
		tb.Errorf("error is %v, want one that matches %q", err, target)
	}
}

// wantUnclear checks that err is an error that gives no verdict and contains
// text.
func wantUnclear(tb testing.TB, err error, text string) {
	tb.Helper()
	var held *lockengine.HeldError
	switch {
	case err == nil:
		tb.Error("no error")
	case errors.As(err, &held), errors.Is(err, lockengine.ErrNotHeld):
		tb.Errorf("error %v is a verdict", err)
	case !strings.Contains(err.Error(), text):
		tb.Errorf("error is %v, want it to contain %q", err, text)
	}
}
