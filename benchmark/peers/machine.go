package main

import (
	"context"
	"fmt"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// describe describes in a line what the figures were taken on.
func describe(ctx context.Context, addrs []string) string {
	m := measure.Describe(ctx)
	redis, _ := measure.RedisServer(ctx, addrs[0])
	m.Note("redis", fmt.Sprintf("%s (%d nodes)", redis["redis_version"], len(addrs)))
	return fmt.Sprintf("%s · %s", m, m.Software())
}
