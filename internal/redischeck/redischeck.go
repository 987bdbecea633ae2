// Package redischeck finds mistakes in the settings of Redis servers that keep locks. A
// service looks at them through its engine, guard-monitor with a user of its own.
//
//	found := redischeck.Servers(ctx, client, func(c *redis.Client) string { return c.Options().Addr })
//
// It only reads, by INFO, TIME, CLUSTER INFO, CLUSTER NODES and CONFIG GET. What the user
// may not run, it reports as not checked.
package redischeck

import (
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

// grant is what to do if the user may not look.
const grant = "grant +info +time +config|get +cluster|info +cluster|nodes to the user, or look with guard-monitor doctor and a user who has these"

// Servers examines all servers of a client, at once. addr returns the address of one.
func Servers(ctx context.Context, client redis.UniversalClient, addr func(*redis.Client) string) (found []doctor.Finding) {
	switch c := client.(type) {
	case *redis.Client:
		return examine(ctx, c, addr)
	case *redis.ClusterClient:
		var mu sync.Mutex
		err := c.ForEachShard(ctx, func(ctx context.Context, node *redis.Client) error {
			some := examine(ctx, node, addr)
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

func examine(ctx context.Context, c *redis.Client, addr func(*redis.Client) string) (found []doctor.Finding) {
	var info, state *redis.StringCmd
	var clock *redis.TimeCmd
	var config *redis.MapStringStringCmd
	began := time.Now()
	_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		info, clock, state, config = p.Info(ctx), p.Time(ctx), p.ClusterInfo(ctx), p.ConfigGet(ctx, "cluster-*")
		return nil
	})
	s := server{addr: addr(c), sentinel: !strings.Contains(c.Options().Addr, ":") && c.Options().Network != "unix"}
	if err != nil && info.Val() == "" && !redis.IsPermissionError(info.Err()) { // if there was no connection, no command has an error
		return []doctor.Finding{doctor.RedisServer.Failed(s.addr, err)}
	}
	if at, err := clock.Result(); err != nil {
		found = append(found, doctor.RedisClock.Unmade(s.addr, err, grant))
	} else {
		found = append(found, doctor.CheckClock(doctor.RedisClock, s.addr, at, began)...)
	}
	if err := info.Err(); err != nil {
		return append(found, doctor.RedisEviction.Unmade(s.addr, err, grant))
	}
	s.info = parse(info.Val())
	found = append(found, s.checkInfo()...)
	if s.info["redis_mode"] != "cluster" {
		return found
	}
	if err := state.Err(); err != nil {
		found = append(found, doctor.RedisCoverage.Unmade(s.addr, err, grant))
	} else {
		s.cluster = parse(state.Val())
		found = append(found, s.checkCoverage()...)
	}
	if err := config.Err(); err != nil {
		return append(found, doctor.RedisFailover.Unmade(s.addr, err, grant))
	}
	s.config = config.Val()
	return append(found, s.checkFailover()...)
}

func (s server) checkInfo() (found []doctor.Finding) {
	switch policy := s.info["maxmemory_policy"]; policy {
	case "noeviction":
	case "":
		found = append(found, doctor.RedisEviction.Unmade(s.addr, errors.New("INFO has no maxmemory_policy"), "ask the provider whether keys may be evicted"))
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
	if state, ok := s.cluster["cluster_state"], s.cluster["cluster_slots_ok"]; state != "ok" || ok != slots {
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
	if ms, err := strconv.Atoi(s.config["cluster-node-timeout"]); err == nil && (ms < minNodeTimeout || ms > maxNodeTimeout) {
		found = append(found, doctor.RedisFailover.Found(s.addr, "cluster-node-timeout is %d ms: a dead master is waited for as long, and a shorter stall is no death", ms))
	}
	return found
}

// members looks at what the nodes of a cluster say of each other.
func members(ctx context.Context, c *redis.ClusterClient) (found []doctor.Finding) {
	text, err := c.ClusterNodes(ctx).Result()
	if err != nil {
		return []doctor.Finding{doctor.RedisReplicas.Unmade("the cluster", err, grant)}
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
