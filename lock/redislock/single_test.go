package redislock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

// single returns an engine on a Redis that is no cluster.
func single(t *testing.T, cfg ...redislock.Config) (redislock.Engine, *miniredis.Miniredis) {
	t.Helper()
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	return openOn(t, client, cfg...), server
}

func TestSingleServer(t *testing.T) {
	e, server := single(t)
	grant := acquire(t, e, hold)
	if want := (lockengine.Place{Node: server.Addr(), Slot: -1}); grant.Place != want || grant.Token <= 0 {
		t.Errorf("granted token %d at %+v, want it at %+v", grant.Token, grant.Place, want)
	}
	if keys, _ := server.HKeys("k"); len(keys) != 1 || server.HGet("k", "me:1") != "1" || server.TTL("k") != ttl {
		t.Errorf("in Redis: %v, expires in %v", keys, server.TTL("k"))
	}
	theirs := lockengine.Request{Key: "k", Owner: "they:1"}
	_, err := e.Acquire(t.Context(), theirs, ttl)
	if holder := wantHeld(t, err, "me:1"); holder.TTL != ttl || holder.Node != server.Addr() {
		t.Errorf("holder is %+v", holder)
	}

	server.FastForward(ttl / 2)
	errs := e.Renew(t.Context(), []lockengine.Request{hold, theirs}, ttl)
	if errs[0] != nil || server.TTL("k") != ttl {
		t.Errorf("Renew: %v, expires in %v", errs[0], server.TTL("k"))
	}
	wantIs(t, errs[1], lockengine.ErrNotHeld)

	server.FastForward(ttl)
	wantIs(t, e.Release(t.Context(), hold), lockengine.ErrNotHeld)
	acquire(t, e, theirs)
	if holder, err := e.Inspect(t.Context(), "k"); err != nil || holder.Owner != "they:1" || holder.TTL != ttl {
		t.Errorf("Inspect: %+v, %v", holder, err)
	}
	release(t, e, theirs)
	if server.Exists("k") {
		t.Error("the key is still there after Release")
	}
}

// errOther matches none of the errors that speak of the engine or of the key.
var errOther = errors.New("another error")

func TestSingleServerErrors(t *testing.T) {
	t.Parallel()
	e, server := single(t)
	if err := server.Set("k", "not a lock"); err != nil {
		t.Fatal(err)
	}
	for _, request := range requests {
		wantUnclear(t, request(t.Context(), e), "WRONGTYPE")
	}
	// What Redis 6 says, which has errors in scripts within a text of its own.
	const within = "ERR Error running script (call to f_5): @user_script:10: @user_script: 10: -"
	for text, want := range map[string]error{
		"NOPERM this user has no permissions to run the 'evalsha' command":                        lockengine.ErrDenied,
		"NOPERM User keys has no permissions to run the 'evalsha' command":                        lockengine.ErrDenied,
		"ERR AUTH <password> called without any password configured for the default user":         lockengine.ErrDenied,
		"ERR max number of clients reached":                                                       lockengine.ErrNotSent,
		within + "OOM command not allowed when used memory > 'maxmemory'.":                        lockengine.ErrRefused,
		within + "READONLY You can't write against a read only replica.":                          lockengine.ErrNotSent,
		"ERR Error running script: @user_script: 1: WRONGTYPE Operation against a key":            lockengine.ErrUnusable,
		"NOPERM ACL failure in script: User u has no permissions to run the 'pexpire' command":    errOther,
		"ERR Error running script: @user_script: 1: The user executing the script can't run this": errOther,
	} {
		server.SetError(text)
		for name, request := range requests {
			wantVerdict(t, name, request(t.Context(), e), want, text)
		}
	}
	server.SetError("NOPERM No permissions to access a key")
	for name, request := range requests {
		want := lockengine.ErrUnusable
		if name == "renew" || name == "release" { // there is a lock, held by the caller
			want = lockengine.ErrDenied
		}
		wantVerdict(t, name, request(t.Context(), e), want, "NOPERM")
	}
	server.SetError("LOADING Redis is loading the dataset in memory")
	for _, request := range requests {
		wantUnclear(t, request(t.Context(), e), "LOADING")
	}
}

// A script is sent once by a plain client too, whose default is to try again.
func TestSentOnceBySingleClient(t *testing.T) {
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			node := newNode(t)
			node.reply = func([]string) string { return hangUp }
			client := redis.NewClient(&redis.Options{Addr: node.addr})
			defer client.Close()
			wantUnclear(t, request(t.Context(), openOn(t, client)), "")
			wantSentOnce(t, node, name)
		})
	}
}

// PUBLISH wakes waiters where there is no SPUBLISH.
func TestReleasePublishes(t *testing.T) {
	onPlain(t, func(t *testing.T, server *miniredis.Miniredis, client redis.UniversalClient) {
		e := openOn(t, client)
		sub := server.NewSubscriber()
		sub.Subscribe("redisson_lock__channel:{k}")
		acquire(t, e, hold)
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		released := make(chan error, 1)
		go func() { released <- e.Release(ctx, hold) }()
		select {
		case msg := <-sub.Messages():
			if msg.Message != "0" {
				t.Errorf("message is %q, want 0", msg.Message)
			}
		case <-ctx.Done():
			t.Error("no message")
		}
		if err := <-released; err != nil {
			t.Errorf("Release: %v", err)
		}
	})
}

func TestServerGone(t *testing.T) {
	e, server := single(t)
	acquire(t, e, hold)
	server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for _, request := range requests {
		wantUnclear(t, request(ctx, e), "")
	}
	wantUnclear(t, e.Ping(ctx), "ping redis: ")
}

// Long and foreign keys go to Redis as they are.
func TestKeysAreTakenAsTheyAre(t *testing.T) {
	e, server := single(t)
	for _, key := range []string{strings.Repeat("k", 512), "订单:7", "a b\r\nDEL k\r\n", "\x00", "*?[a]"} {
		acquire(t, e, lockengine.Request{Key: key, Owner: "me:1"})
		if !server.Exists(key) {
			t.Errorf("no lock at %q", key)
		}
	}
}

// onPlain runs test on a single server, and on a cluster before Redis 7, which
// does not know SPUBLISH.
func onPlain(t *testing.T, test func(t *testing.T, server *miniredis.Miniredis, client redis.UniversalClient)) {
	for name, dial := range map[string]func(addr string) redis.UniversalClient{
		"single": func(addr string) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: addr})
		},
		"old cluster": func(addr string) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := miniredis.RunT(t)
			client := dial(server.Addr())
			defer client.Close()
			test(t, server, client)
		})
	}
}
