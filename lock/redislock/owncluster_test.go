package redislock_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
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

func startCluster(t *testing.T) *ownCluster {
	t.Helper()
	c := &ownCluster{Cluster: teststack.StartCluster(t, "redislock"), t: t}
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
	node, err := c.client.MasterForKey(c.t.Context(), key)
	if err != nil {
		c.t.Fatal(err)
	}
	return node.Options().Addr
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
