package redislock_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

// bell is a wake function that counts.
type bell chan struct{}

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

func (b bell) wait(tb testing.TB, why string) {
	tb.Helper()
	select {
	case <-b:
	case <-time.After(limit):
		tb.Fatalf("no wake-up: %s", why)
	}
}

// watch has the bell rung when key may be free.
func watch(tb testing.TB, e redislock.Engine, key string) (b bell, stop func()) {
	tb.Helper()
	b = make(bell, 1000)
	testwait.Until(tb, "the channel is subscribed to", func() (ok bool) { // a node may have a fault behind it
		var err error
		if stop, err = e.Watch(tb.Context(), key, b.ring); err != nil {
			tb.Logf("Watch: %v", err)
		}
		return err == nil
	})
	tb.Cleanup(stop)
	return b, stop
}

func TestWatch(t *testing.T) {
	e, other := open(t), open(t)
	for i := range 50 { // on all shards
		key := teststack.Key(t, fmt.Sprint("watch", i))
		first, stop := watch(t, e, key)
		second, _ := watch(t, e, key)
		h := lockengine.Request{Key: key, Owner: "me:1"}
		acquire(t, other, h)
		release(t, other, h)
		first.wait(t, "released")
		second.wait(t, "released")

		stop()
		acquire(t, other, h)
		release(t, other, h)
		second.wait(t, "released again")
		if len(first) > 0 {
			t.Fatal("a wake-up after stop")
		}
	}
}

// Only a release is one.
func TestOtherMessagesWakeNobody(t *testing.T) {
	e, c := open(t), cluster(t)
	key := teststack.Key(t, "payload")
	b, _ := watch(t, e, key)
	for _, payload := range []string{"1", "", "00", "x", "0"} {
		c.SPublish(t.Context(), "redisson_lock__channel:{"+key+"}", payload)
	}
	b.wait(t, "released")
	if len(b) > 0 {
		t.Error("another message woke the waiter")
	}
}

// A quiet release publishes nothing, and offers the lock to nobody.
func TestQuietRelease(t *testing.T) {
	s := teststack.StartRedis(t, teststack.Volatile)
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer c.Close()
	e, waits := openURL(t, "redis://"+s.Addr), openURL(t, "redis://"+s.Addr)
	channel := "redisson_lock__channel:{" + hold.Key + "}"
	sub := c.Subscribe(t.Context(), channel)
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	watch(t, waits, hold.Key)
	acquire(t, e, hold)
	_, err := waits.Acquire(t.Context(), lockengine.Request{Key: hold.Key, Owner: "they:1", Waits: true}, ttl)
	wantHeld(t, err, hold.Owner)
	quiet := hold
	quiet.Quiet = true
	release(t, e, quiet)
	if holder, err := e.Inspect(t.Context(), hold.Key); err != nil || holder.Owner != "" {
		t.Errorf("after a quiet release the key is held by %q: %v", holder.Owner, err)
	}
	s.Must("publish", channel, "end")
	m, err := sub.ReceiveMessage(t.Context())
	if err != nil || m.Payload != "end" {
		t.Errorf("published: %v, %v", m, err)
	}
	if n := inLine(t, c, hold.Key); n != 1 {
		t.Errorf("%d engines in line, want the one that waits", n)
	}
}

// Two processes hand one lock to and fro. A waiter whose wake-up gets lost
// would sleep for half a second and more.
func TestNoWakeUpIsLost(t *testing.T) {
	const rounds = 200
	engines := []redislock.Engine{open(t), open(t)}
	key := teststack.Key(t, "to and fro")
	var bells []bell
	for _, e := range engines {
		b, _ := watch(t, e, key)
		bells = append(bells, b)
	}
	for i := range rounds {
		h := lockengine.Request{Key: key, Owner: fmt.Sprint("me:", i)}
		acquire(t, engines[i%2], h)
		release(t, engines[i%2], h)
		for _, b := range bells {
			b.wait(t, fmt.Sprint("release ", i))
		}
	}
}

// A subscription is dropped some time after its last watcher.
func TestSubscriptionEnds(t *testing.T) {
	t.Parallel()
	e, c := open(t), cluster(t)
	key, kept := teststack.Key(t, "a"), teststack.Key(t, "b")
	_, stop := watch(t, e, key)
	b, _ := watch(t, e, kept)
	stop()
	testwait.Until(t, "the subscription ends", func() bool { return subscribers(t, c, key) == 0 })
	if n := subscribers(t, c, kept); n != 1 {
		t.Errorf("%d subscriptions to the lock that is watched, want 1", n)
	}
	again, _ := watch(t, e, key)
	for _, key := range []string{key, kept} {
		h := lockengine.Request{Key: key, Owner: "me:1"}
		acquire(t, e, h)
		release(t, e, h)
	}
	b.wait(t, "released")
	again.wait(t, "released after it was watched again")
}

// subscribers counts the subscriptions to a lock's channel.
func subscribers(tb testing.TB, c *redis.ClusterClient, key string) int64 {
	tb.Helper()
	node, err := c.MasterForKey(tb.Context(), key)
	if err != nil {
		tb.Fatal(err)
	}
	channel := "redisson_lock__channel:{" + key + "}"
	counts, err := node.PubSubShardNumSub(tb.Context(), channel).Result()
	if err != nil {
		tb.Fatal(err)
	}
	return counts[channel]
}

// Many watched locks share one connection per shard and few goroutines.
func TestWatchManyLocks(t *testing.T) {
	const locks = 5000
	name := "belay-" + strings.ToLower(t.Name()) + fmt.Sprint(time.Now().UnixNano())
	e, err := redislock.Open(&redis.UniversalOptions{IsClusterMode: true, Addrs: teststack.Redis(t), ClientName: name}, redislock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	prefix := teststack.Key(t, "many")
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for worker := range 50 {
		wg.Go(func() {
			for i := worker; i < locks; i += 50 {
				if _, err := e.Watch(t.Context(), fmt.Sprint(prefix, i), func() {}); err != nil {
					t.Errorf("Watch: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := runtime.NumGoroutine() - before; n > 40 {
		t.Errorf("%d goroutines for %d locks", n, locks)
	}
	c, conns := cluster(t), 0
	var mu sync.Mutex
	err = c.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		list, err := node.Do(ctx, "client", "list", "type", "pubsub").Text()
		mu.Lock()
		defer mu.Unlock()
		conns += strings.Count(list, " name="+name+" ")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if conns != 3 {
		t.Errorf("%d connections subscribe, want one for each of 3 shards", conns)
	}
}

func TestWatchFails(t *testing.T) {
	t.Parallel()
	mute := newNode(t)
	mute.mute = true
	for name, addr := range map[string]string{"mute": mute.addr, "nobody": "127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			e := open(t, addr)
			if _, err := e.Watch(t.Context(), "k", func() {}); err == nil {
				t.Error("Watch returns no error")
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := e.Watch(ctx, "k", func() {})
			wantIs(t, err, context.Canceled)
		})
	}
	e := open(t, mute.addr)
	e.Close(context.Background())
	if _, err := e.Watch(t.Context(), "k", func() {}); err == nil {
		t.Error("Watch after Close returns no error")
	}
}

// Close ends the subscriptions of an engine on a client that stays open.
func TestCloseEndsSubscriptions(t *testing.T) {
	c := cluster(t)
	e := openOn(t, c)
	key := teststack.Key(t, "close")
	_, stop := watch(t, e, key)
	if err := e.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
	stop()
	testwait.Until(t, "the subscription ends", func() bool { return subscribers(t, c, key) == 0 })
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the client was closed: %v", err)
	}
}
