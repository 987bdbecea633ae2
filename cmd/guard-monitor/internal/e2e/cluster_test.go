package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// cluster is a Redis Cluster of this test's own, so that killing its nodes
// disturbs no other test.
type cluster struct {
	*teststack.Cluster
	t *testing.T
}

// on runs a command on the node at addr.
func (c *cluster) on(addr string, args ...any) *redis.Cmd {
	c.t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DisableIdentity: true})
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return client.Do(ctx, args...)
}

// shard is where a key lives.
type shard struct {
	slot            int
	master, replica string
}

// shardOf asks the cluster for key's shard. A node may hear late of another's
// replica.
func (c *cluster) shardOf(key string) (found shard) {
	c.t.Helper()
	slot, err := c.on(c.Addrs[0], "CLUSTER", "KEYSLOT", key).Int()
	if err != nil {
		c.t.Fatal(err)
	}
	testwait.Until(c.t, "the shard of "+key+" has a replica", func() bool {
		ranges, err := c.on(c.Addrs[0], "CLUSTER", "SLOTS").Slice()
		if err != nil {
			return false
		}
		for _, r := range ranges {
			r := r.([]any)
			if int64(slot) >= r[0].(int64) && int64(slot) <= r[1].(int64) && len(r) > 3 {
				found = shard{slot, address(r[2]), address(r[3])}
				return true
			}
		}
		return false
	})
	return found
}

func address(node any) string {
	n := node.([]any)
	return fmt.Sprintf("%v:%v", n[0], n[1])
}

// detach makes what the shard's master takes from now on unknown to its
// replica, also what waits in a socket.
func (c *cluster) detach(s shard) {
	c.t.Helper()
	c.Stack(c.t, "pause", c.Node(c.t, s.replica))
	if err := c.on(s.master, "CLIENT", "KILL", "TYPE", "replica").Err(); err != nil {
		c.t.Fatal(err)
	}
}

// failOver kills the shard's master, lets its replica go on, and waits until it
// is the master.
func (c *cluster) failOver(s shard) {
	c.t.Helper()
	c.Stack(c.t, "kill", c.Node(c.t, s.master))
	c.Stack(c.t, "resume", c.Node(c.t, s.replica))
	testwait.Until(c.t, "the replica is promoted", func() bool {
		role, err := c.on(s.replica, "ROLE").Slice()
		info, err2 := c.on(s.replica, "CLUSTER", "INFO").Text()
		return err == nil && err2 == nil && role[0] == "master" && strings.Contains(info, "cluster_state:ok")
	})
}

// owner returns the owner id in the lock of key on the node at addr, empty if
// there is no lock.
func (c *cluster) owner(addr, key string) string {
	c.t.Helper()
	owners, err := c.on(addr, "HKEYS", key).StringSlice()
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.Join(owners, ",")
}
