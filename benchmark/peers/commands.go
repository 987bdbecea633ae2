package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A meter counts the commands that clients send to any node of the cluster.
//
// INFO commandstats also counts what scripts call and what replicas are told.
// So of the commands that read or write keys only scripts count, and those that
// a contender sends as they are, at the masters. Asking, with INFO, does not
// count itself.
type meter []*redis.Client

func newMeter(addrs []string) (m meter) {
	for _, addr := range addrs {
		m = append(m, redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1}))
	}
	return m
}

func (m meter) close() {
	for _, node := range m {
		_ = node.Close()
	}
}

// total returns the number of commands since the servers were started; plain
// are those that the contender sends as they are.
func (m meter) total(ctx context.Context, plain []string) (sum int64, err error) {
	for _, node := range m {
		info, err := node.InfoMap(ctx, "commandstats", "replication").Result()
		if err != nil {
			return 0, fmt.Errorf("read the statistics of %s: %w", node.Options().Addr, err)
		}
		sum += countCommands(info, plain)
	}
	return sum, nil
}

// fromClients are the commands that only clients send: scripts may not, and a master
// does not pass them on to its replica.
var fromClients = []string{
	"eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro", "script",
	"subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ssubscribe", "sunsubscribe",
	"hello", "auth", "client", "cluster", "command", "asking", "readonly", "wait", "watch",
}

// countCommands reads lines like "cmdstat_client|tracking" with "calls=3,usec=...".
func countCommands(info map[string]map[string]string, plain []string) (sum int64) {
	if info["Replication"]["role"] != "master" {
		plain = nil
	}
	for key, stats := range info["Commandstats"] {
		name := strings.TrimPrefix(key, "cmdstat_")
		family, _, _ := strings.Cut(name, "|")
		var calls int64
		_, err := fmt.Sscanf(stats, "calls=%d", &calls)
		if err == nil && (slices.Contains(fromClients, family) || slices.Contains(plain, name)) {
			sum += calls
		}
	}
	return sum
}
