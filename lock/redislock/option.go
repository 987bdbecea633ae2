package redislock

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxPrefix is the greatest length of a prefix, in bytes.
const maxPrefix = 512

// An Option adjusts an engine.
type Option func(*Engine) error

// WithPrefix puts prefix before the name of every lock in Redis. Redisson
// clients that share these locks need the same prefix in their names. It has at
// most 512 bytes and no brace. Default: none.
func WithPrefix(prefix string) Option {
	return func(e *Engine) error {
		switch {
		case len(prefix) > maxPrefix:
			return fmt.Errorf("redislock: the prefix has %d bytes, at most %d are allowed", len(prefix), maxPrefix)
		case !utf8.ValidString(prefix):
			return errors.New("redislock: the prefix is not UTF-8")
		case strings.ContainsAny(prefix, "{}"):
			// The channel of a lock has its name in braces: with others in the
			// name, or one hash tag for all locks, they would part, or all be on
			// one shard.
			return fmt.Errorf("redislock: the prefix %q has a brace", prefix)
		}
		e.prefix = prefix
		return nil
	}
}

// WithReplicas grants a lock only when n replicas of its master say within half
// a second that they have it. Otherwise it is released again and Acquire
// returns an error that matches lock.ErrRefused. Each grant then takes as long
// as the slowest of these replicas, and none is given while there are fewer than
// n. It makes it rarer that a failover loses a lock, and does not exclude it: a
// replica that did not answer may be promoted. Default: 0.
func WithReplicas(n int) Option {
	return func(e *Engine) error {
		if n < 0 {
			return fmt.Errorf("redislock: %d replicas", n)
		}
		e.replicas = n
		return nil
	}
}

// WithName tells several engines of one process apart in metrics. Default:
// "redis".
func WithName(name string) Option {
	return func(e *Engine) error {
		if name == "" || !utf8.ValidString(name) {
			return fmt.Errorf("redislock: %q as a name", name)
		}
		e.name = name
		return nil
	}
}
