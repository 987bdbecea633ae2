package lock

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/belaygo/belay/internal/background"
)

// Config adjusts a Locker. The zero value is useful.
type Config struct {
	// TTL is how long a lock outlives its holder. It is renewed at a third of it.
	// Defaults to 30 s; at least 50 ms, at most a year.
	TTL time.Duration
	// RequestTimeout bounds a renewal or a release, which no caller's context ends.
	// Defaults to 1 s, or to a third of TTL if that is less; at most TTL.
	RequestTimeout time.Duration
	// HandOver is how long after the engine's grant callers of this process may
	// hand a lock over in memory. Later the lock is released in the engine, so that
	// other processes get it, too. At least one hand-over takes place whenever a caller
	// waits. Defaults to 10 ms; negative = none.
	HandOver time.Duration
	// MaxHold is how long one caller may hold a lock, so that a holder that hangs is
	// not renewed for ever. After a hand-over the time starts anew. At this limit the
	// context of the lease ends with a cause that matches ErrMaxHold, and Close waits
	// for it no longer. The lock is not renewed any more, but not released, as its
	// holder may be at work: others get it when the holder calls Release, or when it
	// has expired, up to TTL later. The key of a Local acquire is free at once.
	// Defaults to 5 minutes; negative = no limit.
	MaxHold time.Duration
	// Name distinguishes several Lockers of one process in metrics. Defaults to
	// "lock".
	Name string
	// Logger gets failed renewals, and locks that are lost before their holder
	// releases them. Defaults to slog.Default().
	Logger *slog.Logger
}

// defaultMaxHold is the default of Config.MaxHold. It is longer than an ordinary
// operation takes, and low enough that a statement to a silent database does not keep
// its key locked for ever.
const defaultMaxHold = 5 * time.Minute

const (
	minTTL = 50 * time.Millisecond
	maxTTL = 365 * 24 * time.Hour
)

func (c Config) withDefaults() (Config, error) {
	if c.TTL == 0 {
		c.TTL = 30 * time.Second
	}
	if c.TTL < minTTL || c.TTL > maxTTL {
		return c, fmt.Errorf("lock: Config.TTL is %v, want at least %v and at most %v", c.TTL, minTTL, maxTTL)
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = min(time.Second, c.TTL/3)
	}
	if c.RequestTimeout < 0 || c.RequestTimeout > c.TTL {
		return c, fmt.Errorf("lock: Config.RequestTimeout is %v, want more than 0 and at most TTL (%v)", c.RequestTimeout, c.TTL)
	}
	if c.HandOver == 0 {
		c.HandOver = 10 * time.Millisecond
	}
	if c.MaxHold == 0 {
		c.MaxHold = defaultMaxHold
	}
	if c.Name == "" {
		c.Name = "lock"
	}
	c.Logger = background.Logger(c.Logger)
	return c, nil
}

// margin is by how much the local deadline comes before the lock can expire in
// the engine: time for a last statement to end, and for clocks that drift.
func (c Config) margin() time.Duration { return min(c.TTL/10, time.Second) }

// answerTime is how long the engine has for an acquire: the lock can have expired before a later
// answer comes.
func (c Config) answerTime() time.Duration { return c.TTL - c.margin() }
