package redislock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/redislock"
)

// The start of a server is known when it has answered. It is never told too early, and a
// restart is known as soon as the new server has answered.
func TestStarted(t *testing.T) {
	before := time.Now()
	s := teststack.StartRedis(t, teststack.Volatile)
	e := openURL(t, "redis://"+s.Addr, redislock.Config{AskStart: true})
	started := func() time.Time {
		t.Helper()
		at, err := e.Started()
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	if at := started(); !at.IsZero() {
		t.Errorf("started at %v, before anything was asked", at)
	}
	acquire(t, e, hold)
	first := started()
	if first.Before(before) || first.After(time.Now()) {
		t.Errorf("started at %v, want it after %v", first, before)
	}
	testwait.Until(t, "the server counts seconds", func() bool {
		text := s.Do("info", "server").String()
		return !strings.Contains(text, "uptime_in_seconds:0\r") && !strings.Contains(text, "uptime_in_seconds:1\r")
	})
	s.Do("client", "kill", "type", "normal", "skipme", "yes")
	testwait.Until(t, "it is asked again", func() bool { return e.Ping(t.Context()) == nil })
	if again := started(); again.Before(before) || again.After(time.Now()) {
		t.Errorf("started at %v, want it after %v", again, before)
	}
	s.Kill()
	killed := time.Now()
	s.Start()
	testwait.Until(t, "the new server answers", func() bool {
		_, err := e.Acquire(t.Context(), hold, ttl)
		return err == nil
	})
	if at := started(); at.Before(killed) {
		t.Errorf("started at %v, but the server was killed %v later", at, killed.Sub(at))
	}
}

// The caller's own function for new connections is called, too.
func TestStartedBesideOnConnect(t *testing.T) {
	s := teststack.StartRedis(t, teststack.Volatile)
	called := make(chan struct{}, 100)
	opts := &redis.UniversalOptions{Addrs: []string{s.Addr}, OnConnect: func(context.Context, *redis.Conn) error {
		called <- struct{}{}
		return nil
	}}
	e := openWith(t, opts, redislock.Config{AskStart: true})
	acquire(t, e, hold)
	if len(called) == 0 {
		t.Error("OnConnect was not called")
	}
}

func TestStartedNeedsSingleServer(t *testing.T) {
	cfg := redislock.Config{AskStart: true}
	for _, opts := range []*redis.UniversalOptions{
		{Addrs: []string{"127.0.0.1:1"}, IsClusterMode: true},
		{Addrs: []string{"127.0.0.1:1", "127.0.0.1:2"}},
		{Addrs: []string{"127.0.0.1:1"}, MasterName: "m"},
	} {
		if _, err := redislock.Open(opts, cfg); err == nil || !strings.Contains(err.Error(), "single server") {
			t.Errorf("error of Open is %v", err)
		}
	}
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	if _, err := redislock.New(client, cfg); err == nil || !strings.Contains(err.Error(), "only with Open") {
		t.Errorf("error of New is %v", err)
	}
	if _, err := openOn(t, client).Started(); err == nil {
		t.Error("Started without AskStart has no error")
	}
}

// A server starts with a clock that is behind, which is set then, as after a boot: it says that it
// has been up for an hour. Whoever knew the server before it was started again, knows better.
func TestStartedBeforeItsClockWasSet(t *testing.T) {
	s, clock := teststack.StartRedis(t, teststack.Volatile), teststack.NewClock(t)
	s.Env = clock.Env
	e := openURL(t, "redis://"+s.Addr, redislock.Config{AskStart: true})
	acquire(t, e, hold)
	for range 2 {
		clock.Set(-time.Hour)
		s.Kill()
		killed := time.Now()
		s.Start()
		s.SetClock(clock, 0)
		testwait.Until(t, "the server has been up for an hour, it says", func() bool {
			text := s.Do("info", "server").String()
			return strings.Contains(text, "uptime_in_seconds:36")
		})
		testwait.Until(t, "the new server answers", func() bool {
			_, err := e.Acquire(t.Context(), hold, ttl)
			return err == nil
		})
		if at, err := e.Started(); err != nil || at.Before(killed) {
			t.Errorf("started at %v (%v), but the server was killed %v later", at, err, killed.Sub(at))
		}
	}
}
