package main

import (
	"fmt"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/lock"
)

func contenders() []contender {
	return []contender{
		raw(), bsmRedislock(), redsyncOnePool(), rueidisMajority1(), redisson(),
		belay("belay", fmt.Sprintf("lock.New over redislock.Open, both with their defaults (ttl %v)", ttl), lock.Config{TTL: ttl}),
		belay("belay-no-handover", "as belay, with Config.HandOver -1: every lock granted by Redis", lock.Config{TTL: ttl, HandOver: -1}),
	}
}

// choose returns the contenders that a list of names selects; the empty list
// selects all.
func choose(names string) ([]contender, error) {
	return measure.Choose(names, contenders(), func(c contender) string { return c.name })
}
