package redislock_test

import (
	"context"
	"errors"
	"net"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

// openOn returns an engine on a client of the test's own.
func openOn(tb testing.TB, c redis.UniversalClient, cfg ...redislock.Config) redislock.Engine {
	tb.Helper()
	e, err := redislock.New(c, one(cfg))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

func TestOpenWithoutAddresses(t *testing.T) {
	for name, opts := range map[string]*redis.UniversalOptions{
		"nil": nil, "empty": {}, "no addresses": {Addrs: []string{}}, "no port": {Addrs: []string{"localhost"}}, "an empty address": {Addrs: []string{"127.0.0.1:7000", ""}},
	} {
		if _, err := redislock.Open(opts, redislock.Config{}); err == nil || !strings.Contains(err.Error(), "UniversalOptions.Addrs") {
			t.Errorf("%s options: %v, want an error that names UniversalOptions.Addrs", name, err)
		}
	}
}

// The error of Open does not contain an address, which may be a URL with a password.
func TestOpenWithURLsAsAddresses(t *testing.T) {
	for _, addr := range []string{
		"redis://:s3cret@10.0.0.1:6379", "redis://s3cret@10.0.0.1", "s3cret@10.0.0.1:6379", "belay:s3cret@10.0.0.1:6379", "redis://10.0.0.1",
	} {
		opts := &redis.UniversalOptions{Addrs: []string{"127.0.0.1:7000", addr}}
		_, err := redislock.Open(opts, redislock.Config{})
		if err == nil || !strings.Contains(err.Error(), "UniversalOptions.Addrs[1]") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Open with %s: %v, want an error that names UniversalOptions.Addrs[1]", addr, err)
		}
	}
}

func TestNewWithoutClient(t *testing.T) {
	if _, err := redislock.New(nil, redislock.Config{}); err == nil {
		t.Error("New(nil) returns no error")
	}
}

// Open neither dials nor writes into the caller's options.
func TestOpenLeavesOptionsAlone(t *testing.T) {
	dials := 0
	opts := &redis.UniversalOptions{IsClusterMode: true, Addrs: []string{"127.0.0.1:1"}, ReadTimeout: time.Minute}
	before := *opts
	e, err := redislock.Open(opts, redislock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	if !reflect.DeepEqual(*opts, before) {
		t.Errorf("options are %+v, were %+v", *opts, before)
	}
	opts.Dialer = func(context.Context, string, string) (net.Conn, error) {
		dials++
		return nil, errors.New("no network")
	}
	e, err = redislock.Open(opts, redislock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	if dials != 0 {
		t.Errorf("Open dialled %d times", dials)
	}
	wantUnclear(t, e.Ping(t.Context()), "ping redis: ")
}

// TestOpenDialsNothingAhead: connections that would be kept idle are not made either.
func TestOpenDialsNothingAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int64
		e, err := redislock.Open(&redis.UniversalOptions{
			Addrs: []string{"127.0.0.1:1"}, MinIdleConns: 2,
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				dials.Add(1)
				return nil, errors.New("no network")
			},
		}, redislock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := dials.Load(); n != 0 {
			t.Errorf("Open dialled %d times", n)
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestClose(t *testing.T) {
	e := open(t)
	h := lockengine.Request{Key: teststack.Key(t, "closed"), Owner: "me:1"}
	acquire(t, e, h)
	release(t, e, h)
	for range 2 {
		if err := e.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	_, err := e.Acquire(t.Context(), h, ttl)
	wantUnclear(t, err, "closed")
	wantUnclear(t, e.Renew(t.Context(), []lockengine.Request{h}, ttl)[0], "closed")
}

// A client that was passed in stays its owner's to close.
func TestCloseLeavesClientAlone(t *testing.T) {
	c := cluster(t)
	if err := openOn(t, c).Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the client was closed: %v", err)
	}
}

func TestPing(t *testing.T) {
	if err := open(t).Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	nobody := "127.0.0.1:1"
	wantUnclear(t, open(t, nobody).Ping(t.Context()), nobody)
}
