package main

import (
	"context"
	"fmt"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// describe describes in a line what the figures were taken on.
func describe(ctx context.Context, addrs []string) string {
	m := measure.Describe(ctx)
	m.Note("redis", fmt.Sprintf("%s (%d nodes)", measure.RedisVersion(ctx, addrs[0]), len(addrs)))
	return fmt.Sprintf("%s · %s", m, m.Software())
}
