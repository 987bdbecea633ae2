package redislock_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

func TestBadConfig(t *testing.T) {
	for want, cfg := range map[string]redislock.Config{
		"has a brace":    {Prefix: "{app}:"},
		"a}b":            {Prefix: "a}b"},
		"not UTF-8":      {Prefix: "\xff"},
		"513 bytes":      {Prefix: strings.Repeat("p", 513)},
		"Replicas is -1": {Replicas: -1},
		"Config.Name":    {Name: "\xff"},
	} {
		if _, err := redislock.Open(options("127.0.0.1:7000"), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want it to contain %q", err, want)
		}
	}
}

func TestTypedNilClient(t *testing.T) {
	for _, client := range []redis.UniversalClient{(*redis.Client)(nil), (*redis.ClusterClient)(nil), (*redis.Ring)(nil)} {
		if _, err := redislock.New(client, redislock.Config{}); err == nil {
			t.Errorf("New takes a nil %T", client)
		}
	}
}

func TestPrefix(t *testing.T) {
	prefix, c := teststack.Key(t, "app:"), cluster(t)
	e, err := redislock.New(c, redislock.Config{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	b, _ := watch(t, e, "k")
	grant := acquire(t, e, hold)
	if owner := c.HKeys(t.Context(), prefix+"k").Val(); len(owner) != 1 || owner[0] != hold.Owner {
		t.Errorf("owners at %q: %v", prefix+"k", owner)
	}
	if grant.Entry != prefix+"k" || e.Locate("k").Entry != grant.Entry {
		t.Errorf("the entry is %q, want the name in Redis", grant.Entry)
	}
	if slot := int(c.ClusterKeySlot(t.Context(), prefix+"k").Val()); grant.Slot != slot {
		t.Errorf("slot is %d, want %d", grant.Slot, slot)
	}
	if errs := e.Renew(t.Context(), []lockengine.Request{hold}, ttl); errs[0] != nil {
		t.Errorf("Renew: %v", errs[0])
	}
	if holder, err := e.Inspect(t.Context(), "k"); err != nil || holder.Owner != hold.Owner {
		t.Errorf("Inspect: %+v, %v", holder, err)
	}
	release(t, e, hold)
	b.wait(t, "released")
}

func TestReplicas(t *testing.T) {
	addrs, shared := teststack.Redis(t), cluster(t)
	for name, open := range map[string]func(cfg redislock.Config) (redislock.Engine, error){
		"open": func(cfg redislock.Config) (redislock.Engine, error) {
			return redislock.Open(options(addrs...), cfg)
		},
		"new": func(cfg redislock.Config) (redislock.Engine, error) { return redislock.New(shared, cfg) },
	} {
		t.Run(name, func(t *testing.T) {
			e, err := open(redislock.Config{Replicas: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close(context.Background())
			h := lockengine.Request{Key: teststack.Key(t, "replicated"), Owner: "me:1"}
			if grant := acquire(t, e, h); grant.Node == "" || grant.Token == 0 {
				t.Errorf("grant is %+v", grant)
			}
			_, err = e.Acquire(t.Context(), lockengine.Request{Key: h.Key, Owner: "they:1"}, ttl)
			wantHeld(t, err, h.Owner)
			release(t, e, h)

			few, err := open(redislock.Config{Replicas: 5}) // each master has one
			if err != nil {
				t.Fatal(err)
			}
			defer few.Close(context.Background())
			_, err = few.Acquire(t.Context(), h, ttl)
			wantUnclear(t, err, "1 of 5 replicas")
			wantIs(t, err, lockengine.ErrRefused)
			if notSent(err) {
				t.Errorf("error %v says that nothing was sent", err)
			}
			if holder, err := e.Inspect(t.Context(), h.Key); err != nil || holder.Owner != "" {
				t.Errorf("Inspect after the refusal: %+v, %v", holder, err)
			}
		})
	}
}

// WAIT is sent after the script, on the same connection, and never with a
// release.
func TestReplicasOnTheWire(t *testing.T) {
	n := newNode(t)
	n.reply = func(args []string) string {
		if len(args) == acquireArgs {
			return granted["acquire"]
		}
		return granted["release"]
	}
	e, err := redislock.Open(options(n.addr), redislock.Config{Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	_, err = e.Acquire(t.Context(), hold, ttl) // the node answers OK, which is no number
	wantUnclear(t, err, "wait for replicas")
	wantIs(t, err, lockengine.ErrRefused)
	if notSent(err) {
		t.Errorf("error %v says that nothing was sent", err)
	}
	if n := n.count("wait"); n != 1 {
		t.Errorf("%d WAITs with an acquire, want 1", n)
	}
	if n := n.count("evalsha"); n != 2 {
		t.Errorf("%d scripts with an acquire that is withdrawn, want it and a release", n)
	}
	_ = e.Release(context.Background(), hold)
	if n := n.count("wait"); n != 1 {
		t.Errorf("%d WAITs after a release, want 1 as before", n)
	}
}

// The slot migrates, but nobody knows where to.
func TestReplicasOfUnknownNode(t *testing.T) {
	n := newNode(t)
	n.reply = func([]string) string { return "-ASK 7629 127.0.0.1:1\r\n" }
	e := openWith(t, options(n.addr), redislock.Config{Replicas: 1})
	_, err := e.Acquire(t.Context(), hold, ttl)
	wantIs(t, err, lockengine.ErrNotSent)
	wantUnclear(t, err, "127.0.0.1:1")
	if strings.Contains(err.Error(), "%!") {
		t.Errorf("error is %q", err)
	}
}
