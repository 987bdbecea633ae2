package e2e_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// cluster is a Redis Cluster of this test's own, so that killing its nodes
// disturbs no other test.
type cluster struct {
	t     *testing.T
	env   []string
	addrs []string
}

const firstPort = 17100

// startCluster brings the cluster up and has it stopped when the test ends.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, env: append(os.Environ(), "BELAY_STACK=e2e", "BELAY_STACK_PORT="+strconv.Itoa(firstPort))}
	t.Cleanup(func() { c.stack("down") })
	c.stack("up", "redis")
	for n := 1; n <= 6; n++ {
		c.addrs = append(c.addrs, net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+n)))
	}
	return c
}

func (c *cluster) stack(args ...string) {
	c.t.Helper()
	cmd := exec.Command("../../scripts/stack", args...)
	cmd.Env = c.env
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("scripts/stack %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// node is the name that scripts/stack has for an address.
func (c *cluster) node(addr string) string {
	_, port, _ := strings.Cut(addr, ":")
	n, err := strconv.Atoi(port)
	if err != nil {
		c.t.Fatalf("address %q: %v", addr, err)
	}
	return "redis-" + strconv.Itoa(n-firstPort)
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
	slot, err := c.on(c.addrs[0], "CLUSTER", "KEYSLOT", key).Int()
	if err != nil {
		c.t.Fatal(err)
	}
	await(c.t, "the shard of "+key+" has a replica", func() bool {
		ranges, err := c.on(c.addrs[0], "CLUSTER", "SLOTS").Slice()
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
	c.stack("pause", c.node(s.replica))
	if err := c.on(s.master, "CLIENT", "KILL", "TYPE", "replica").Err(); err != nil {
		c.t.Fatal(err)
	}
}

// failOver kills the shard's master, lets its replica go on, and waits until it
// is the master.
func (c *cluster) failOver(s shard) {
	c.t.Helper()
	c.stack("kill", c.node(s.master))
	c.stack("resume", c.node(s.replica))
	await(c.t, "the replica is promoted", func() bool {
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

// await waits until cond holds.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("it never happened: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}
