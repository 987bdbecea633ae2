package watch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Target is one Redis, whatever the number of its servers.
type Target struct {
	Name   string   // shown to people, and told apart by; required
	Addrs  []string // host:port of some nodes, of all servers outside a cluster, or of the Sentinels; required
	Master string   // Sentinel's name of the master; empty = no Sentinel

	Username, Password                 string // of the servers
	SentinelUsername, SentinelPassword string

	TLS *tls.Config // nil = none
}

// Config configures a Watcher. Targets and Record are required.
type Config struct {
	Targets []Target
	// Record takes entries, the oldest first, and sets their IDs. Those that it
	// refuses are offered again later.
	Record func(context.Context, []Entry) error
	// Every is how often each node is asked. Default 1 s, at least 100 ms.
	Every time.Duration
	// Timeout bounds the questions to a node in a round. Default 800 ms, at most
	// Every.
	Timeout time.Duration
	Logger  *slog.Logger // default: silent
}

func (c Config) withDefaults() (Config, error) {
	if c.Every == 0 {
		c.Every = time.Second
	}
	if c.Timeout == 0 {
		c.Timeout = c.Every * 4 / 5
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Record == nil:
		return c, errors.New("watch: Config.Record is nil")
	case c.Every < 100*time.Millisecond:
		return c, fmt.Errorf("watch: Config.Every is %v, want at least 100ms", c.Every)
	case c.Timeout < 0 || c.Timeout > c.Every:
		return c, fmt.Errorf("watch: Config.Timeout is %v, want more than 0 and at most Every (%v)", c.Timeout, c.Every)
	}
	names := make(map[string]bool)
	for i, t := range c.Targets {
		if err := t.validate(); err != nil {
			return c, fmt.Errorf("watch: Config.Targets[%d]: %w", i, err)
		}
		if names[t.Name] {
			return c, fmt.Errorf("watch: Config.Targets[%d]: the name %q is taken", i, t.Name)
		}
		names[t.Name] = true
	}
	return c, nil
}

func (t Target) validate() error {
	switch {
	case t.Name == "":
		return errors.New("field Name is empty")
	case len(t.Addrs) == 0:
		return errors.New("field Addrs is empty")
	}
	for _, addr := range t.Addrs {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return fmt.Errorf("field Addrs: %q is not host:port", addr)
		}
	}
	return nil
}
