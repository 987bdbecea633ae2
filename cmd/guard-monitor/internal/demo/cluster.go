package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// cluster is the Redis Cluster of the stack.
type cluster struct {
	addrs   []string
	control string // scripts/stack
}

// node is one of its servers.
type node struct {
	name string // for scripts/stack
	addr string
}

// shard is where a key lives.
type shard struct{ master, replica node }

// on asks the node at addr.
func on(ctx context.Context, addr string, ask func(context.Context, *redis.Client) error) error {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return ask(ctx, client)
}

// shardOf finds the shard of key. A node may hear late of another's replica.
func (c *cluster) shardOf(ctx context.Context, key string) (found shard, err error) {
	names, err := c.names(ctx)
	if err != nil {
		return shard{}, err
	}
	err = until(ctx, "the shard of "+key+" to have a replica", func() (bool, error) {
		return nil == on(ctx, c.addrs[0], func(ctx context.Context, client *redis.Client) error {
			slot, err := client.ClusterKeySlot(ctx, key).Result()
			if err != nil {
				return err
			}
			shards, err := client.ClusterShards(ctx).Result()
			for _, s := range shards {
				if slices.ContainsFunc(s.Slots, func(r redis.SlotRange) bool { return r.Start <= slot && slot <= r.End }) {
					found = shard{member(s, "master", names), member(s, "replica", names)}
				}
			}
			if err == nil && (found.master.name == "" || found.replica.name == "") {
				err = errors.New("no replica")
			}
			return err
		}), nil
	})
	return found, err
}

// member returns a member of a shard that is well and has the role.
func member(s redis.ClusterShard, role string, names map[string]string) node {
	for _, n := range s.Nodes {
		if n.Role == role && n.Health == "online" {
			addr := net.JoinHostPort(n.IP, strconv.FormatInt(n.Port, 10))
			return node{names[addr], addr}
		}
	}
	return node{}
}

// names are the names of the nodes, by address.
func (c *cluster) names(ctx context.Context) (map[string]string, error) {
	status, err := c.run(ctx, "status")
	names := make(map[string]string)
	for line := range strings.Lines(status) {
		if fields := strings.Fields(line); len(fields) > 1 {
			names[fields[1]] = fields[0]
		}
	}
	return names, err
}

// run runs a command of scripts/stack.
func (c *cluster) run(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, c.control, args...).CombinedOutput() //nolint:gosec // who runs the demo names it
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", c.control, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// detach makes what the shard's master takes from now on unknown to its replica,
// also what waits in a socket.
func (c *cluster) detach(ctx context.Context, s shard) error {
	if _, err := c.run(ctx, "pause", s.replica.name); err != nil {
		return err
	}
	return on(ctx, s.master.addr, func(ctx context.Context, client *redis.Client) error {
		return client.ClientKillByFilter(ctx, "TYPE", "replica").Err()
	})
}

// kill kills the master and lets its replica go on.
func (c *cluster) kill(ctx context.Context, s shard) error {
	if _, err := c.run(ctx, "kill", s.master.name); err != nil {
		return err
	}
	_, err := c.run(ctx, "resume", s.replica.name)
	return err
}

// promoted waits until the replica is the master, and makes sure that it does not
// have the lock.
func (c *cluster) promoted(ctx context.Context, s shard) error {
	err := until(ctx, s.replica.name+" to become the master", func() (bool, error) {
		return nil == on(ctx, s.replica.addr, func(ctx context.Context, client *redis.Client) error {
			role, err := client.Do(ctx, "ROLE").Slice()
			if err != nil {
				return err
			}
			if len(role) == 0 || role[0] != "master" {
				return errors.New("a replica still")
			}
			return nil
		}), nil
	})
	if err != nil {
		return err
	}
	has, err := c.has(ctx, s.replica.addr, itemKey)
	if has {
		err = fmt.Errorf("%s has the lock of the dead master", s.replica.name)
	}
	return err
}

// has reports whether there is a lock on the node at addr.
func (c *cluster) has(ctx context.Context, addr, key string) (has bool, err error) {
	err = on(ctx, addr, func(ctx context.Context, client *redis.Client) error {
		n, err := client.Exists(ctx, key).Result()
		has = n > 0
		return err
	})
	return has, err
}
