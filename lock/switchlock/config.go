package switchlock

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/belaygo/belay/lock"
)

// Config adjusts an engine.
type Config struct {
	// Source keeps the record. It is required.
	Source Source
	// Engines are those that the locks can be kept in, by name. All processes have the same
	// names for them. The engines stay the caller's, to be closed after the switch.
	Engines map[string]lock.Engine
	// First is the engine that keeps the locks until the first switch.
	First string
	// Lease is how long a process relies on the record after it has read it, and TTL the
	// longest ttl of a lock: an acquire with a longer one is denied. A switch takes a little
	// longer than both together. They default to 10 and 30 seconds.
	//
	// They are those of the process that makes the first record. See [Engine.Retime].
	Lease, TTL time.Duration
	// Logger gets a line for each switch, and a warning when the record can't be read.
	// Defaults to slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.TTL = cmp.Or(c.TTL, 30*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.Engines = maps.Clone(c.Engines)
	switch {
	case c.Source == nil:
		return c, errors.New("switchlock: Config.Source is nil")
	case c.Engines[c.First] == nil:
		return c, fmt.Errorf("switchlock: Config.First is %q; Config.Engines has %q", c.First, c.names())
	}
	for name, e := range c.Engines {
		if e == nil {
			return c, fmt.Errorf("switchlock: Config.Engines[%q] is nil", name)
		}
		if name == "" || len(name) > maxName {
			return c, fmt.Errorf("switchlock: Config.Engines: the name %q has not 1 to %d bytes", name, maxName)
		}
	}
	return c, checkTimes(c.Lease, c.TTL)
}

// maxName is the longest name of an engine, in bytes.
const maxName = 64

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
