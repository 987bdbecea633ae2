// Package redischeck finds mistakes in the settings of Redis servers that keep locks. A
// service looks at them through its engine, guard-monitor with a user of its own.
//
//	found := redischeck.Servers(ctx, client, func(c *redis.Client) string { return c.Options().Addr })
//
// It only reads, by INFO, TIME, CLUSTER INFO, CLUSTER NODES and CONFIG GET. If the user may not run
// a command, or the server does not know it, the checks that need it are reported as not made. The
// others are made.
package redischeck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/doctor"
)

// What to do if the user may not look, or the server does not say.
const (
	grant  = "grant +info +time +config|get +cluster|info +cluster|nodes to the user, or look with guard-monitor doctor and a user who has these"
	byHand = "remove rename-command for it from the server's configuration, or ask the provider"
)

// unread returns the finding that a check could not be made, because the server refused a command.
func unread(c doctor.Check, subject, command string, refusal error) doctor.Finding {
	fix := byHand
	if redis.IsPermissionError(refusal) {
		fix = grant
	}
	return c.Unmade(subject, fmt.Errorf("could not read %s: %w", command, refusal), fix)
}

// refused reports whether the server refused to run this one command. A server that requires a
// password or is loading refuses all commands, which does not count.
func refused(err error) bool {
	refusal, answered := errors.AsType[redis.Error](err)
	return answered && (redis.IsPermissionError(err) || strings.HasPrefix(refusal.Error(), "ERR "))
}

// Servers examines all servers of a client, at once. addr returns the address of one.
func Servers(ctx context.Context, client redis.UniversalClient, addr func(*redis.Client) string) (found []doctor.Finding) {
	switch c := client.(type) {
	case *redis.Client:
		return examine(ctx, c, addr, false)
	case *redis.ClusterClient:
		var mu sync.Mutex
		err := c.ForEachShard(ctx, func(ctx context.Context, node *redis.Client) error {
			some := examine(ctx, node, addr, true)
			mu.Lock()
			defer mu.Unlock()
			found = append(found, some...)
			return nil
		})
		if err != nil {
			return append(found, doctor.RedisServer.Failed("the cluster", err))
		}
		return append(found, members(ctx, c)...)
	}
	unknown := fmt.Errorf("nothing is known of a %T", client)
	return []doctor.Finding{doctor.RedisServer.Unmade("the client", unknown, "look at the settings of the servers by hand")}
}

// A server is one node that has answered.
type server struct {
	addr     string
	sentinel bool // others take its place
	info     map[string]string
	cluster  map[string]string // CLUSTER INFO
	config   map[string]string
}

// examine looks at one server. clustered says that it is known to be in a cluster.
func examine(ctx context.Context, c *redis.Client, addr func(*redis.Client) string, clustered bool) (found []doctor.Finding) {
	var info, state *redis.StringCmd
	var clock *redis.TimeCmd
	var config *redis.MapStringStringCmd
	began := time.Now()
	_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		info, clock, state, config = p.Info(ctx), p.Time(ctx), p.ClusterInfo(ctx), p.ConfigGet(ctx, "cluster-*")
		return nil
	})
	s := server{addr: addr(c), sentinel: !strings.Contains(c.Options().Addr, ":") && c.Options().Network != "unix"}
	if err != nil && info.Val() == "" && !refused(info.Err()) { // if there was no connection, no command has an error
		return []doctor.Finding{doctor.RedisServer.Failed(s.addr, err)}
	}
	if at, err := clock.Result(); err != nil {
		found = append(found, unread(doctor.RedisClock, s.addr, "TIME", err))
	} else {
		found = append(found, doctor.CheckClock(doctor.RedisClock, s.addr, at, began)...)
	}
	if err := info.Err(); err != nil {
		found = append(found, unread(doctor.RedisEviction, s.addr, "INFO", err))
		if s.sentinel {
			found = append(found, unread(doctor.RedisReplicas, s.addr, "INFO", err))
		}
	} else {
		s.info = parse(info.Val())
		found = append(found, s.checkInfo()...)
	}
	if !clustered && s.info["redis_mode"] != "cluster" {
		return found
	}
	if err := state.Err(); err != nil {
		found = append(found, unread(doctor.RedisCoverage, s.addr, "CLUSTER INFO", err))
	} else {
		s.cluster = parse(state.Val())
		found = append(found, s.checkCoverage()...)
	}
	if err := config.Err(); err != nil {
		return append(found, unread(doctor.RedisFailover, s.addr, "CONFIG GET", err))
	}
	s.config = config.Val()
	return append(found, s.checkFailover()...)
}

func (s server) checkInfo() (found []doctor.Finding) {
	switch policy := s.info["maxmemory_policy"]; policy {
	case "noeviction":
	case "":
		found = append(found, doctor.RedisEviction.Unread(s.addr, "maxmemory_policy in INFO", "ask the provider whether keys may be evicted"))
	default:
		found = append(found, doctor.RedisEviction.Found(s.addr, "maxmemory-policy is %q, which may evict locks", policy))
	}
	switch {
	case s.info["role"] == "slave" && s.info["master_link_status"] != "up":
		found = append(found, doctor.RedisReplicas.Found(s.addr, "it is a replica, and not connected to its master"))
	case s.sentinel && s.info["role"] == "master" && s.info["connected_slaves"] == "0":
		found = append(found, doctor.RedisReplicas.Found(s.addr, "the master has no replica, so Sentinel can promote none"))
	}
	return found
}

const slots = "16384"

func (s server) checkCoverage() (found []doctor.Finding) {
	switch state, ok := s.cluster["cluster_state"], s.cluster["cluster_slots_ok"]; {
	case state == "" || ok == "":
		found = append(found, doctor.RedisCoverage.Unread(s.addr, "cluster_state and cluster_slots_ok in CLUSTER INFO", "ask the provider whether all slots are served"))
	case state != "ok" || ok != slots:
		found = append(found, doctor.RedisCoverage.Found(s.addr, "cluster_state is %s, and %s of %s slots are served", state, ok, slots))
	}
	return found
}

// What cluster-node-timeout should be, in milliseconds.
const minNodeTimeout, maxNodeTimeout = 2000, 5000

func (s server) checkFailover() (found []doctor.Finding) {
	if s.config["cluster-require-full-coverage"] == "yes" {
		found = append(found, doctor.RedisFailover.Found(s.addr, "with cluster-require-full-coverage each failover stops all shards"))
	}
	switch ms, err := strconv.Atoi(s.config["cluster-node-timeout"]); {
	case err != nil:
		found = append(found, doctor.RedisFailover.Unread(s.addr, "cluster-node-timeout by CONFIG GET", "ask the provider how long a failover takes"))
	case ms < minNodeTimeout || ms > maxNodeTimeout:
		found = append(found, doctor.RedisFailover.Found(s.addr, "cluster-node-timeout is %d ms: a dead master is waited for as long, and a shorter stall is no death", ms))
	}
	return found
}

// members looks at what the nodes of a cluster say of each other.
func members(ctx context.Context, c *redis.ClusterClient) (found []doctor.Finding) {
	text, err := nodes(ctx, c)
	if err != nil {
		return []doctor.Finding{unread(doctor.RedisReplicas, "the cluster", "CLUSTER NODES", err)}
	}
	replicas := make(map[string]int) // that live, by the master's id
	var masters [][]string
	for line := range strings.Lines(text) {
		f := strings.Fields(line) // id address flags master ping pong epoch link slot...
		if len(f) < 8 {
			continue
		}
		addr, _, _ := strings.Cut(f[1], "@")
		flags := strings.Split(f[2], ",")
		dead := slices.ContainsFunc(flags, func(f string) bool { return f == "fail" || f == "fail?" || f == "noaddr" })
		switch {
		case strings.Contains(f[2], "master") && len(f) > 8:
			masters = append(masters, []string{f[0], addr})
		case dead && f[3] != "-":
			found = append(found, doctor.RedisReplicas.Found(addr, "the replica does not answer the cluster"))
		case f[3] != "-":
			replicas[f[3]]++
		}
	}
	for _, m := range masters {
		if replicas[m[0]] == 0 {
			found = append(found, doctor.RedisReplicas.Found(m[1], "the master has no replica"))
		}
	}
	return found
}

// nodes returns what the first node that answers says of all. A client picks any of the
// nodes that it was given by name, also one that is dead.
func nodes(ctx context.Context, c *redis.ClusterClient) (text string, err error) {
	var mu sync.Mutex
	failed := c.ForEachShard(ctx, func(ctx context.Context, node *redis.Client) error {
		answer, err := node.ClusterNodes(ctx).Result()
		mu.Lock()
		defer mu.Unlock()
		text = cmp.Or(text, answer)
		return err
	})
	if text != "" {
		return text, nil
	}
	return "", failed
}

// parse reads lines "name:value".
func parse(text string) map[string]string {
	known := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			known[name] = value
		}
	}
	return known
}
