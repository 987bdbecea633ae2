package redislock

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/belaygo/belay/internal/background"
)

// Config adjusts an engine. The zero value is useful.
type Config struct {
	// Prefix is put before the name of every lock in Redis. Redisson clients that
	// share these locks need the same prefix in their names. It has at most 512
	// bytes and no brace. Defaults to none.
	Prefix string
	// Replicas is how many replicas of its master must have a lock before it is
	// granted. If fewer confirm that within half a second, the lock is released again
	// and Acquire returns an error that matches lockengine.ErrRefused. Each grant then takes
	// as long as the slowest of these replicas. A failover then loses locks more
	// rarely, but may still lose one: a replica that did not answer may be promoted.
	// Defaults to 0.
	Replicas int
	// AskStart makes each new connection read the server's run id and uptime by INFO server,
	// as package quorumlock needs it. It works only with Open, and with a single server. The user needs the right to INFO. Defaults to false.
	AskStart bool
	// NoTracking turns off the tracking of held locks: the next renewal then finds the
	// loss of a lock. With tracking, an engine that holds locks has two more connections
	// to each master. Defaults to false.
	NoTracking bool
	// Logger gets a warning if a server refuses to track locks. Defaults to slog.Default().
	Logger *slog.Logger
	// Name distinguishes several engines of one process in metrics. Defaults to
	// "redis".
	Name string
}

// maxPrefix is the greatest length of a prefix, in bytes.
const maxPrefix = 512

func (c Config) withDefaults() (Config, error) {
	switch {
	case len(c.Prefix) > maxPrefix:
		return c, fmt.Errorf("redislock: Config.Prefix has %d bytes, at most %d are allowed", len(c.Prefix), maxPrefix)
	case !utf8.ValidString(c.Prefix):
		return c, errors.New("redislock: Config.Prefix is not UTF-8")
	case strings.ContainsAny(c.Prefix, "{}"):
		// The channel of a lock has its name in braces: with others in the name, or
		// one hash tag for all locks, they would part, or all be on one shard.
		return c, fmt.Errorf("redislock: Config.Prefix %q has a brace", c.Prefix)
	case c.Replicas < 0:
		return c, fmt.Errorf("redislock: Config.Replicas is %d", c.Replicas)
	case !utf8.ValidString(c.Name):
		return c, fmt.Errorf("redislock: Config.Name %q is not UTF-8", c.Name)
	}
	c.Logger = background.Logger(c.Logger)
	c.Name = cmp.Or(c.Name, "redis")
	return c, nil
}
