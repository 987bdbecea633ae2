package switchlock

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/isnil"
	"github.com/belaygo/belay/lock/lockengine"
)

// Config adjusts an engine.
type Config struct {
	// Source keeps the record. It is required.
	Source Source
	// Engines are the engines that can keep the locks, by name: 1 to 64 bytes, the same in
	// all processes. Close does not close them: close them after it. At a switch, held locks
	// are acquired in the new engine by one request each, 64 at a time. If there are many, an
	// engine can acquire them by fewer requests, as sqllock does, in a method
	// Adopt(context.Context, []lockengine.Request, time.Duration) []error, which returns one error for
	// each request, in order: nil if the owner has the lock.
	Engines map[string]lockengine.Engine
	// First is the name of the engine that keeps the locks until the first switch. It counts
	// only while there is no record.
	First string
	// Lease is how long a process relies on the record after it has read it. TTL is the
	// longest ttl of a lock: an acquire or a renewal with a longer one fails with
	// lockengine.ErrDenied. A switch takes a little longer than both together. Each is 100 ms to
	// one hour. They default to 10 and 30 seconds.
	//
	// They count only in the process that writes the first record, and stand in it from then
	// on. [Engine.Retime] changes them.
	Lease, TTL time.Duration
	// Logger gets a line for each switch, a warning when the record can't be read, and an
	// error when the source has lost a record, or the record names an engine that Engines
	// lacks. Defaults to slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.TTL = cmp.Or(c.TTL, 30*time.Second)
	c.Logger = background.Logger(c.Logger)
	c.Engines = maps.Clone(c.Engines)
	switch {
	case isnil.Value(c.Source):
		return c, errors.New("switchlock: Config.Source is nil")
	case c.Engines[c.First] == nil:
		return c, fmt.Errorf("switchlock: Config.First is %q; Config.Engines has %q", c.First, c.names())
	}
	for name, e := range c.Engines {
		if isnil.Value(e) {
			return c, fmt.Errorf("switchlock: Config.Engines[%q] is nil", name)
		}
		if err := checkName(name); err != nil {
			return c, err
		}
	}
	return c, checkTimes(c.Lease, c.TTL)
}

// checkName checks the name of an engine, which is a label of a metric.
func checkName(name string) error {
	const longest = 64
	if name == "" || len(name) > longest || !utf8.ValidString(name) {
		return fmt.Errorf("switchlock: the name %q of an engine has not 1 to %d bytes of UTF-8", name, longest)
	}
	return nil
}

func checkTimes(lease, ttl time.Duration) error {
	const shortest, longest = 100 * time.Millisecond, time.Hour
	for name, d := range map[string]time.Duration{"Lease": lease, "TTL": ttl} {
		if d < shortest || d > longest {
			return fmt.Errorf("switchlock: %s is %v, want %v to %v", name, d, shortest, longest)
		}
	}
	return nil
}

func (c Config) names() []string { return slices.Sorted(maps.Keys(c.Engines)) }

// first is the record of a source that has none.
func (c Config) first() Record {
	return Record{Epoch: 1, From: c.First, To: c.First, Settled: true, Lease: c.Lease, TTL: c.TTL, By: "first process"}
}
