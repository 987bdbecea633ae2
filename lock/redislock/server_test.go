package redislock_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

// handOver takes and releases a lock, of which a watcher hears.
func handOver(t *testing.T, e redislock.Engine) lockengine.Place {
	t.Helper()
	b, _ := watch(t, e, hold.Key)
	grant := acquire(t, e, hold)
	_, err := e.Acquire(t.Context(), lockengine.Request{Key: hold.Key, Owner: "they:1"}, ttl)
	wantHeld(t, err, hold.Owner)
	if errs := e.Renew(t.Context(), []lockengine.Request{hold}, ttl); errs[0] != nil {
		t.Errorf("Renew: %v", errs[0])
	}
	release(t, e, hold)
	b.wait(t, "released")
	return grant.Place
}

func TestSingleRedis(t *testing.T) {
	s := teststack.StartRedis(t, teststack.Volatile)
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer client.Close()
	want := lockengine.Place{Node: s.Addr, Slot: -1}
	if place := handOver(t, openOn(t, client)); place != want {
		t.Errorf("granted at %+v, want %+v", place, want)
	}

	_, err := openOn(t, client, redislock.Config{Replicas: 1}).Acquire(t.Context(), hold, ttl)
	wantUnclear(t, err, "0 of 1 replicas")
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	on := func(dial func(*redis.FailoverOptions) redis.UniversalClient) func(*testing.T, []string, ...redislock.Config) redislock.Engine {
		return func(t *testing.T, addrs []string, cfg ...redislock.Config) redislock.Engine {
			client := dial(&redis.FailoverOptions{MasterName: "locks", SentinelAddrs: addrs})
			t.Cleanup(func() { _ = client.Close() })
			return openOn(t, client, cfg...)
		}
	}
	for name, open := range map[string]func(*testing.T, []string, ...redislock.Config) redislock.Engine{
		"client":         on(func(o *redis.FailoverOptions) redis.UniversalClient { return redis.NewFailoverClient(o) }),
		"cluster client": on(func(o *redis.FailoverOptions) redis.UniversalClient { return redis.NewFailoverClusterClient(o) }),
		"own client":     openSentinel,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPair(t)
			e := open(t, p.sentinels)
			place := handOver(t, e)
			if place.Slot != -1 || !strings.HasSuffix(place.Node, ":"+p.port) {
				t.Errorf("granted at %+v, want it at %s", place, p.master.Addr)
			}
			replicated := open(t, p.sentinels, redislock.Config{Replicas: 1})
			if place := acquire(t, replicated, hold).Place; place.Slot != -1 || !strings.HasSuffix(place.Node, ":"+p.port) {
				t.Errorf("granted at %+v to the one with replicas, want it at %s", place, p.master.Addr)
			}
			release(t, replicated, hold)

			b, _ := watch(t, e, hold.Key)
			p.master.Kill()
			b.wait(t, "the master died")
			testwait.Until(t, "the replica takes over", func() bool {
				_, err := e.Acquire(t.Context(), hold, ttl)
				return err == nil
			})
			if owner := p.replica.Do("hkeys", hold.Key).Val(); fmt.Sprint(owner) != "[me:1]" {
				t.Errorf("owner on the new master is %v", owner)
			}
			b, _ = watch(t, e, hold.Key)
			release(t, e, hold)
			b.wait(t, "released on the new master")
		})
	}
}

func openSentinel(t *testing.T, addrs []string, cfg ...redislock.Config) redislock.Engine {
	return openURL(t, "redis+sentinel://"+strings.Join(addrs, ",")+"/locks", cfg...)
}

// A pair is a master and its replica under three Sentinels.
type pair struct {
	master, replica *teststack.RedisServer
	port            string // of the master
	sentinels       []string
	watchers        []*teststack.RedisServer // at these addresses
}

func startPair(tb testing.TB) pair {
	tb.Helper()
	master := teststack.StartRedis(tb, teststack.Volatile)
	_, port, _ := net.SplitHostPort(master.Addr)
	replica := teststack.StartRedis(tb, teststack.Volatile+"replicaof 127.0.0.1 "+port+"\n")
	testwait.Until(tb, "the replica follows", func() bool {
		role, err := replica.Do("role").Slice()
		return err == nil && role[3] == "connected"
	})
	addrs, watchers := sentinels(tb, port)
	return pair{master, replica, port, addrs, watchers}
}

// sentinels starts three that watch the master at a port, and waits until they
// know each other and its replica.
func sentinels(tb testing.TB, port string) (addrs []string, all []*teststack.RedisServer) {
	tb.Helper()
	for range 3 {
		s := teststack.StartRedis(tb, "sentinel monitor locks 127.0.0.1 "+port+" 2\n"+
			"sentinel down-after-milliseconds locks 3000\nsentinel failover-timeout locks 3000\n", "--sentinel")
		addrs, all = append(addrs, s.Addr), append(all, s)
	}
	for _, addr := range addrs {
		client := redis.NewSentinelClient(&redis.Options{Addr: addr})
		defer client.Close()
		testwait.Until(tb, "the sentinels know each other", func() bool {
			m, err := client.Master(tb.Context(), "locks").Result()
			return err == nil && m["num-slaves"] == "1" && m["num-other-sentinels"] == "2"
		})
	}
	return addrs, all
}
