package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strings"
	"time"
	"unicode/utf8"
)

// Config adjusts an engine. Servers must be set.
type Config struct {
	// Servers are the addresses of the ensemble's members, host:port.
	Servers []string
	// Root is the node under which the locks are kept. It is created when it is missing.
	// Defaults to "/belay/lock".
	Root string
	// Name is the node of all locks in errors, events and metrics. Defaults to "zookeeper".
	Name string
	// SessionTimeout is how long the servers keep the session of a process that they do not
	// hear of, and so the locks of one that was killed. It must be four thirds of the
	// longest ttl, and at least three ticks of the servers, which allow 2 to 20 ticks and
	// take the nearest. Defaults to 40 seconds, which is what servers allow by default, for
	// a ttl of 30.
	SessionTimeout time.Duration
	// Dial opens connections, such as those of TLS. Defaults to that of a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Logger gets a warning when a session expires that kept locks, and when a lock that
	// nobody renews can't be deleted. Defaults to slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	c.Root = cmp.Or(c.Root, "/belay/lock")
	c.Name = cmp.Or(c.Name, "zookeeper")
	c.SessionTimeout = cmp.Or(c.SessionTimeout, 40*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	if len(c.Servers) == 0 {
		return c, errors.New("zklock: Config.Servers is empty")
	}
	for _, server := range c.Servers {
		if _, port, err := net.SplitHostPort(server); err != nil || port == "" {
			return c, fmt.Errorf("zklock: Config.Servers has %q, which is not host:port", server)
		}
	}
	switch {
	case !isPath(c.Root):
		return c, fmt.Errorf("zklock: Config.Root %q is not the path of a node", c.Root)
	case !utf8.ValidString(c.Name):
		return c, fmt.Errorf("zklock: Config.Name %q is not UTF-8", c.Name)
	case c.SessionTimeout < 100*time.Millisecond || c.SessionTimeout/time.Millisecond > math.MaxInt32:
		return c, fmt.Errorf("zklock: Config.SessionTimeout %v is not 100 milliseconds to 24 days", c.SessionTimeout)
	}
	return c, nil
}

// isPath reports whether ZooKeeper takes p as a path under the root.
func isPath(p string) bool {
	rest, ok := strings.CutPrefix(p, "/")
	if !ok || !utf8.ValidString(p) || rest == "zookeeper" || strings.HasPrefix(rest, "zookeeper/") {
		return false
	}
	for name := range strings.SplitSeq(rest, "/") {
		if name == "" || name == "." || name == ".." || strings.ContainsFunc(name, isForbidden) {
			return false
		}
	}
	return true
}

// isForbidden reports whether ZooKeeper has no r in the names of nodes.
func isForbidden(r rune) bool {
	return r < 0x20 || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}
