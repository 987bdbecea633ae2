package redislock_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
)

// ownCluster is a Redis Cluster of this test's own, whose nodes may be killed.
type ownCluster struct {
	*teststack.Cluster
	t      *testing.T
	client *redis.ClusterClient
}

// starting keeps clusters that start from picking the same ports.
var starting sync.Mutex

func startCluster(t *testing.T, name string) *ownCluster {
	t.Helper()
	starting.Lock()
	defer starting.Unlock()
	c := &ownCluster{Cluster: teststack.StartCluster(t, name), t: t}
	c.client = redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs})
	t.Cleanup(func() { c.client.Close() })
	return c
}

func split(addr string) (host, port string) {
	host, port, _ = net.SplitHostPort(addr)
	return host, port
}

// must runs a command on the node at addr.
func (c *ownCluster) must(addr string, args ...any) string {
	c.t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	reply, err := client.Do(c.t.Context(), args...).Result()
	if err != nil {
		c.t.Fatalf("%v on %s: %v", args, addr, err)
	}
	return fmt.Sprint(reply)
}

func (c *ownCluster) id(addr string) string { return c.must(addr, "CLUSTER", "MYID") }

type shard struct {
	slot   int
	master string
}

// shardOf asks the cluster for key's shard.
func (c *ownCluster) shardOf(key string) shard {
	c.t.Helper()
	// It reloads the slot map: an earlier case may have changed it.
	err := c.client.ForEachMaster(c.t.Context(), func(context.Context, *redis.Client) error { return nil })
	if err != nil {
		c.t.Fatal(err)
	}
	slot, err := strconv.Atoi(c.must(c.Addrs[0], "CLUSTER", "KEYSLOT", key))
	if err != nil {
		c.t.Fatal(err)
	}
	return shard{slot, c.masterOf(key)}
}

// masterOf returns the address of key's master, as of the last shardOf.
func (c *ownCluster) masterOf(key string) string {
	c.t.Helper()
	return masterOf(c.t, c.client, key)
}

func masterOf(tb testing.TB, c *redis.ClusterClient, key string) string {
	tb.Helper()
	node, err := c.MasterForKey(tb.Context(), key)
	if err != nil {
		tb.Fatal(err)
	}
	return node.Options().Addr
}

// elsewhere returns n new keys that are on other shards than key.
func elsewhere(tb testing.TB, c *redis.ClusterClient, key string, n int) (keys []string) {
	tb.Helper()
	master := masterOf(tb, c, key)
	for i := 0; len(keys) < n; i++ {
		if other := fmt.Sprint(key, ":", i); masterOf(tb, c, other) != master {
			keys = append(keys, other)
		}
	}
	return keys
}

// replicaOf returns the address of the replica of a master.
func (c *ownCluster) replicaOf(master string) string {
	c.t.Helper()
	fields := strings.Fields(c.must(master, "CLUSTER", "REPLICAS", c.id(master)))
	if len(fields) < 2 {
		c.t.Fatalf("%s has no replica", master)
	}
	addr, _, _ := strings.Cut(fields[1], "@")
	return addr
}

func (c *ownCluster) masters() (addrs []string) {
	c.t.Helper()
	var mu sync.Mutex
	err := c.client.ForEachMaster(c.t.Context(), func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		addrs = append(addrs, node.Options().Addr)
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return addrs
}

// otherMaster returns a master that does not have s.
func (c *ownCluster) otherMaster(s shard) string {
	c.t.Helper()
	for i := 0; ; i++ {
		if other := c.shardOf(fmt.Sprint(i)).master; other != s.master {
			return other
		}
	}
}
