package watch

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
)

// useNames gives the nodes of a view the addresses that clients have for them: those with
// their names where the node that was asked prefers these to IPs.
func useNames(ctx context.Context, c *redis.Client, view []member) error {
	if !slices.ContainsFunc(view, func(m member) bool { return m.named != "" }) {
		return nil
	}
	shards, err := c.Do(ctx, "CLUSTER", "SLOTS").Slice()
	if err != nil && !forbidden(err) {
		return err
	}
	if !preferNames(view, shards) {
		return nil
	}
	for i, m := range view {
		if m.named != "" {
			view[i].addr = m.named
		}
	}
	return nil
}

// preferNames reports whether CLUSTER SLOTS has a node under the name that it announces. It
// lists shards as [first slot, last slot, node...].
func preferNames(view []member, shards []any) bool {
	for _, s := range shards {
		shard, _ := s.([]any)
		for _, n := range shard[min(len(shard), 2):] {
			addr := endpoint(n)
			if slices.ContainsFunc(view, func(m member) bool { return m.named != "" && m.named == addr }) {
				return true
			}
		}
	}
	return false
}

// endpoint reads a node of CLUSTER SLOTS: [host, port, ...].
func endpoint(node any) string {
	fields, _ := node.([]any)
	if len(fields) < 2 {
		return ""
	}
	return join(fmt.Sprint(fields[0]), fmt.Sprint(fields[1]))
}
