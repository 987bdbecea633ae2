package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A meter counts the commands that clients send to any node of the cluster.
//
// INFO commandstats also counts what scripts call and what replicas are told.
// So of the commands that read or write keys only scripts count, and those that
// a contender sends as they are, at the masters. Asking, with INFO, does not
// count itself.
type meter struct{ nodes []*redis.Client }

func newMeter(addrs []string) *meter {
	m := new(meter)
	for _, addr := range addrs {
		m.nodes = append(m.nodes, redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1}))
	}
	return m
}

func (m *meter) close() {
	for _, node := range m.nodes {
		_ = node.Close()
	}
}

// total returns the number of commands since the servers were started; plain
// are those that the contender sends as they are.
func (m *meter) total(ctx context.Context, plain []string) (int64, error) {
	var sum int64
	for _, node := range m.nodes {
		info, err := node.Info(ctx, "commandstats", "replication").Result()
		if err != nil {
			return 0, fmt.Errorf("read the statistics of %s: %w", node.Options().Addr, err)
		}
		sum += countCommands(info, plain)
	}
	return sum, nil
}

func countCommands(info string, plain []string) int64 {
	if !strings.Contains(info, "role:master") {
		plain = nil
	}
	var sum int64
	lines := bufio.NewScanner(strings.NewReader(info))
	for lines.Scan() {
		name, calls, ok := commandLine(lines.Text())
		if ok && (fromClients(name) || slices.Contains(plain, name)) {
			sum += calls
		}
	}
	return sum
}

// commandLine reads "cmdstat_client|tracking:calls=3,usec=...".
func commandLine(line string) (name string, calls int64, ok bool) {
	line, ok = strings.CutPrefix(line, "cmdstat_")
	if !ok {
		return "", 0, false
	}
	name, stats, ok := strings.Cut(line, ":calls=")
	if !ok {
		return "", 0, false
	}
	number, _, _ := strings.Cut(stats, ",")
	calls, err := strconv.ParseInt(number, 10, 64)
	return name, calls, err == nil
}

// fromClients tells whether only clients send a command: scripts may not, and
// a master does not pass it on to its replica.
func fromClients(name string) bool {
	family, _, _ := strings.Cut(name, "|")
	switch family {
	case "eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro", "script",
		"subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ssubscribe", "sunsubscribe",
		"hello", "auth", "client", "cluster", "command", "asking", "readonly", "wait", "watch":
		return true
	}
	return false
}
