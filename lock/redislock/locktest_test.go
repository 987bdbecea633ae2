package redislock_test

import (
	"net"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/locktest"
	"github.com/belaygo/belay/lock/redislock"
)

func TestContractOnCluster(t *testing.T) {
	teststack.Redis(t)
	locktest.Test(t, func(t *testing.T) locktest.Setup {
		return locktest.Setup{
			Engine: open(t), Other: open(t),
			Wakes: true, Marks: true, Tokens: true, Nodes: true, Slots: true, Probes: true,
		}
	})
}

// The engine and its server are connected by what may fail, so they name two addresses.
func TestContractOnSingleServer(t *testing.T) {
	server := teststack.StartRedis(t, teststack.Volatile)
	plain := func(t *testing.T, addr string) redislock.Engine {
		client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
		t.Cleanup(func() { _ = client.Close() })
		return openOn(t, client)
	}
	own := func(t *testing.T, addr string) redislock.Engine { return openURL(t, "redis://"+addr) }
	for name, open := range map[string]func(t *testing.T, addr string) redislock.Engine{"plain client": plain, "own client": own} {
		t.Run(name, func(t *testing.T) {
			locktest.Test(t, func(t *testing.T) locktest.Setup {
				link := locktest.NewLink(t, server.Addr)
				return locktest.Setup{
					Engine: open(t, link.Addr), Other: open(t, server.Addr), Fault: link.Fault,
					Wakes: true, Marks: true, Tokens: true, Probes: true,
				}
			})
		})
	}
}

func TestContractOnSentinel(t *testing.T) {
	master := teststack.StartRedis(t, teststack.Volatile)
	_, port, _ := net.SplitHostPort(master.Addr)
	teststack.StartRedis(t, teststack.Volatile+"replicaof 127.0.0.1 "+port+"\n")
	addrs, _ := sentinels(t, port)
	opts := &redis.FailoverOptions{MasterName: "locks", SentinelAddrs: addrs}
	locktest.Test(t, func(t *testing.T) locktest.Setup {
		return setup(t, func() redis.UniversalClient { return redis.NewFailoverClient(opts) })
	})
}

func TestContractOnMiniredis(t *testing.T) {
	locktest.Test(t, func(t *testing.T) locktest.Setup {
		server := miniredis.RunT(t)
		s := setup(t, func() redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: server.Addr()})
		})
		s.Advance = server.FastForward
		return s
	})
}

// setup has two engines on clients of their own.
func setup(t *testing.T, dial func() redis.UniversalClient) locktest.Setup {
	t.Helper()
	here, there := dial(), dial()
	t.Cleanup(func() {
		_ = here.Close()
		_ = there.Close()
	})
	return locktest.Setup{
		Engine: openOn(t, here), Other: openOn(t, there),
		Wakes: true, Marks: true, Tokens: true, Nodes: true, Probes: true,
	}
}
