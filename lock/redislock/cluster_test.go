package redislock_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

const redisson = "8743c9c0-0795-4907-87fd-6c719a6b4586:91" // an owner in Java

// What other clients see of a lock is what Redisson's RLock leaves there.
func TestLockInRedis(t *testing.T) {
	e, c := open(t), cluster(t)
	h := lockengine.Request{Key: teststack.Key(t, "wire"), Owner: "me:1"}
	acquire(t, e, h)
	if kind := c.Type(t.Context(), h.Key).Val(); kind != "hash" {
		t.Errorf("type is %s, want hash", kind)
	}
	fields := c.HGetAll(t.Context(), h.Key).Val()
	if len(fields) != 1 || fields["me:1"] != "1" {
		t.Errorf("fields are %v, want me:1 = 1", fields)
	}
	if left := c.PTTL(t.Context(), h.Key).Val(); left <= 0 || left > ttl {
		t.Errorf("expires in %v, want up to %v", left, ttl)
	}
	release(t, e, h)
	if n := c.Exists(t.Context(), h.Key).Val(); n != 0 {
		t.Error("the key is still there after Release")
	}
}

func TestHeldByRedisson(t *testing.T) {
	e, c := open(t), cluster(t)
	h := lockengine.Request{Key: teststack.Key(t, "java"), Owner: "me:1"}
	c.HSet(t.Context(), h.Key, redisson, 2) // entered twice
	t.Cleanup(func() { c.Del(context.Background(), h.Key) })

	_, err := e.Acquire(t.Context(), h, ttl)
	if holder := wantHeld(t, err, redisson); holder.TTL != 0 {
		t.Errorf("a lock without expiry has %v left", holder.TTL)
	}
	c.PExpire(t.Context(), h.Key, time.Minute)
	_, err = e.Acquire(t.Context(), h, ttl)
	holder := wantHeld(t, err, redisson)
	if holder.TTL <= ttl || holder.TTL > time.Minute || holder.Node == "" || holder.Slot < 0 {
		t.Errorf("holder is %+v", holder)
	}

	wantIs(t, e.Renew(t.Context(), []lockengine.Request{h}, ttl)[0], lockengine.ErrNotHeld)
	wantIs(t, e.Release(t.Context(), h), lockengine.ErrNotHeld)
	if inspected, err := e.Inspect(t.Context(), h.Key); err != nil || inspected.Owner != redisson {
		t.Errorf("Inspect: %+v, %v", inspected, err)
	}
	if n := c.HGet(t.Context(), h.Key, redisson).Val(); n != "2" {
		t.Errorf("Redisson's count is %s, want 2 as before", n)
	}
	if left := c.PTTL(t.Context(), h.Key).Val(); left <= ttl {
		t.Errorf("Redisson's lock expires in %v, want about a minute as before", left)
	}
}

func TestAcquireTwiceIsOneHold(t *testing.T) {
	e, c := open(t), cluster(t)
	h := lockengine.Request{Key: teststack.Key(t, "twice"), Owner: "me:1"}
	first := acquire(t, e, h)
	c.PExpire(t.Context(), h.Key, time.Second)
	second := acquire(t, e, h)
	if second.Token <= first.Token {
		t.Errorf("token %d after %d, want it to grow", second.Token, first.Token)
	}
	if n := c.HGet(t.Context(), h.Key, h.Owner).Val(); n != "1" {
		t.Errorf("count is %s, want 1", n)
	}
	if left := c.PTTL(t.Context(), h.Key).Val(); left <= time.Second {
		t.Errorf("expires in %v, want the new ttl", left)
	}
	release(t, e, h)
	wantIs(t, e.Release(t.Context(), h), lockengine.ErrNotHeld)
}

// One batch has keys of all shards, held or not, and every verdict is at its
// place.
func TestRenew(t *testing.T) {
	e, c := open(t), cluster(t)
	prefix := teststack.Key(t, "batch")
	var holds []lockengine.Request
	for i := range 60 {
		h := lockengine.Request{Key: prefix + strconv.Itoa(i), Owner: "me:" + strconv.Itoa(i)}
		holds = append(holds, h)
		switch i % 3 {
		case 0:
			acquire(t, e, h)
			c.PExpire(t.Context(), h.Key, time.Second)
			t.Cleanup(func() { c.Del(context.Background(), h.Key) })
		case 1:
			c.Set(t.Context(), h.Key, "not a lock", time.Minute)
		}
	}
	errs := e.Renew(t.Context(), holds, ttl)
	for i, err := range errs {
		switch i % 3 {
		case 0:
			if left := c.PTTL(t.Context(), holds[i].Key).Val(); err != nil || left <= time.Second {
				t.Errorf("hold %d: %v, expires in %v", i, err, left)
			}
		case 1:
			wantUnclear(t, err, "WRONGTYPE")
		case 2:
			wantIs(t, err, lockengine.ErrNotHeld)
		}
	}
	if errs := e.Renew(t.Context(), nil, ttl); len(errs) != 0 {
		t.Errorf("Renew of nothing: %v", errs)
	}
}

func TestInspectFreeKey(t *testing.T) {
	holder, err := open(t).Inspect(t.Context(), teststack.Key(t, "free"))
	if err != nil || holder.Owner != "" || holder.TTL != 0 || holder.Node == "" {
		t.Errorf("Inspect: %+v, %v, want nobody, and the node", holder, err)
	}
}

// Something else has the name of the lock.
func TestKeyOfAnotherType(t *testing.T) {
	e, c := open(t), cluster(t)
	h := lockengine.Request{Key: teststack.Key(t, "string"), Owner: "me:1"}
	c.Set(t.Context(), h.Key, "precious", time.Minute)
	for name, request := range map[string]func() error{
		"acquire": func() error { _, err := e.Acquire(t.Context(), h, ttl); return err },
		"renew":   func() error { return e.Renew(t.Context(), []lockengine.Request{h}, ttl)[0] },
		"release": func() error { return e.Release(t.Context(), h) },
		"inspect": func() error { _, err := e.Inspect(t.Context(), h.Key); return err },
	} {
		t.Run(name, func(t *testing.T) {
			err := request()
			wantUnclear(t, err, "WRONGTYPE")
			wantIs(t, err, lockengine.ErrUnusable)
		})
	}
	if value := c.Get(t.Context(), h.Key).Val(); value != "precious" {
		t.Errorf("value is %q, want it as it was", value)
	}
}

func TestReleaseWakesRedisson(t *testing.T) {
	e, c := open(t), cluster(t)
	h := lockengine.Request{Key: teststack.Key(t, "wake"), Owner: "me:1"}
	channel := "redisson_lock__channel:{" + h.Key + "}"
	sub := c.SSubscribe(t.Context(), channel)
	defer sub.Close()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if _, err := sub.Receive(ctx); err != nil { // it is subscribed
		t.Fatal(err)
	}

	acquire(t, e, h)
	wantIs(t, e.Release(ctx, lockengine.Request{Key: h.Key, Owner: "not me"}), lockengine.ErrNotHeld)
	release(t, e, h)
	c.SPublish(ctx, channel, "end")
	for _, want := range []string{"0", "end"} { // one wake-up, and none for the refused release
		msg, err := sub.ReceiveMessage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if msg.Channel != channel || msg.Payload != want {
			t.Errorf("message is %q on %q, want %q on %q", msg.Payload, msg.Channel, want, channel)
		}
	}
}

// The scripts may be flushed, or a new master may not know them.
func TestScriptsFlushed(t *testing.T) {
	e, c := open(t), cluster(t)
	h := lockengine.Request{Key: teststack.Key(t, "flush"), Owner: "me:1"}
	flush := func() {
		err := c.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
			return node.ScriptFlush(ctx).Err()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	flush()
	acquire(t, e, h)
	flush()
	if err := e.Renew(t.Context(), []lockengine.Request{h}, ttl)[0]; err != nil {
		t.Errorf("Renew: %v", err)
	}
	flush()
	if holder, err := e.Inspect(t.Context(), h.Key); err != nil || holder.Owner != h.Owner {
		t.Errorf("Inspect: %+v, %v", holder, err)
	}
	flush()
	release(t, e, h)
}

func TestPlace(t *testing.T) {
	e, c := open(t), cluster(t)
	shared := cluster(t)
	own := openOn(t, shared)
	shards, err := c.ClusterShards(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	prefix := teststack.Key(t, "钥匙 ")
	for i := range 200 {
		h := lockengine.Request{Key: fmt.Sprint(prefix, i), Owner: "me:1"}
		grant := acquire(t, e, h)
		slot := int(c.ClusterKeySlot(t.Context(), h.Key).Val())
		if want := (lockengine.Place{Node: master(shards, slot), Slot: slot}); grant.Place != want {
			t.Fatalf("granted at %+v, want %+v", grant.Place, want)
		}
		_, err := e.Acquire(t.Context(), lockengine.Request{Key: h.Key, Owner: "they:1"}, ttl)
		if holder := wantHeld(t, err, h.Owner); holder.Place != grant.Place {
			t.Fatalf("held at %+v, want %+v", holder.Place, grant.Place)
		}
		holder, err := own.Inspect(t.Context(), h.Key) // a client without our hook
		if err != nil || holder.Place != grant.Place {
			t.Fatalf("Inspect: %+v, %v, want it at %+v", holder, err, grant.Place)
		}
		release(t, e, h)
	}
}

func master(shards []redis.ClusterShard, slot int) string {
	for _, shard := range shards {
		for _, r := range shard.Slots {
			for _, n := range shard.Nodes {
				if r.Start <= int64(slot) && int64(slot) <= r.End && n.Role == "master" {
					return net.JoinHostPort(n.IP, strconv.FormatInt(n.Port, 10))
				}
			}
		}
	}
	return "none"
}

func TestTokensGrow(t *testing.T) {
	e := open(t)
	key := teststack.Key(t, "token")
	var last int64
	for i := range 100 {
		h := lockengine.Request{Key: key, Owner: "me:" + strconv.Itoa(i)}
		token := acquire(t, e, h).Token
		if token <= last || token%1024 != 0 {
			t.Fatalf("token %d after %d, want a greater multiple of 1024", token, last)
		}
		last = token
		release(t, e, h)
	}
	if at := time.UnixMicro(last / 1024); time.Since(at).Abs() > time.Hour {
		t.Errorf("token %d is of %v, want the server's time", last, at)
	}
}

func TestExpiry(t *testing.T) {
	e := open(t)
	key := teststack.Key(t, "expiry")
	if _, err := e.Acquire(t.Context(), lockengine.Request{Key: key, Owner: "dead:1"}, 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	lease, err := newLocker(t, e, lock.Config{}).Acquire(ctx, key) // which waits
	if err != nil {
		t.Fatal(err)
	}
	wantIs(t, e.Release(t.Context(), lockengine.Request{Key: key, Owner: "dead:1"}), lockengine.ErrNotHeld)
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}
