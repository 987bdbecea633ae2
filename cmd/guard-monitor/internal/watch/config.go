package watch

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"time"
)

// Target is one Redis, whatever the number of its servers.
type Target struct {
	Name   string   // identifies it to people; required
	Addrs  []string // host:port of some nodes, of all servers outside a cluster, or of the Sentinels; required
	Master string   // Sentinel's name of the master; empty = no Sentinel

	Username, Password                 string // of the servers
	SentinelUsername, SentinelPassword string

	TLS *tls.Config // nil = none
}

// Config configures a Watcher. Record is required.
type Config struct {
	Targets []Target // whose names differ
	// Record stores entries, the oldest first, and sets their IDs. After an error it is
	// called with the same entries again.
	Record func(context.Context, []Entry) error
	// Every is how often each node is queried. Defaults to 1 s.
	Every  time.Duration
	Logger *slog.Logger // default: silent
}

func (c Config) withDefaults() Config {
	c.Every = cmp.Or(c.Every, time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// timeout bounds the queries to a node in a round.
func (c Config) timeout() time.Duration { return c.Every * 4 / 5 }
