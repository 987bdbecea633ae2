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

	"github.com/belaygo/belay/internal/background"
)

// Config adjusts an engine. Servers must be set.
type Config struct {
	// Servers are the addresses of the ensemble's members, host:port. Required.
	Servers []string
	// Root is the path of the node under which the locks are kept. It is created when it is
	// missing. All processes that share locks must have the same. Defaults to "/belay/lock".
	Root string
	// Name is the node of all locks in errors, events and metrics. Defaults to "zookeeper".
	Name string
	// SessionTimeout is how long the servers keep the session of a process that does not
	// answer, and so the locks of a process that was killed. It must be at least four thirds
	// of the longest ttl, and at least three ticks of the servers. Servers allow 2 to 20
	// ticks, unless their configuration says otherwise, and use the nearest value that they
	// allow. Defaults to 40 seconds, which is the most that servers allow by default, and
	// enough for a ttl of 30.
	SessionTimeout time.Duration
	// Dial opens a connection, for example with TLS. Defaults to net.Dialer.DialContext.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Logger gets a warning when a session that kept locks expires, and when a lock that was
	// not renewed can't be deleted. Defaults to slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	c.Root = cmp.Or(c.Root, "/belay/lock")
	c.Name = cmp.Or(c.Name, "zookeeper")
	c.SessionTimeout = cmp.Or(c.SessionTimeout, 40*time.Second)
	c.Logger = background.Logger(c.Logger)
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
		return c, fmt.Errorf("zklock: Config.SessionTimeout is %v, want 100 milliseconds to 24 days", c.SessionTimeout)
	}
	return c, nil
}

// isPath reports whether ZooKeeper takes p as the path of a node other than its own.
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

// isForbidden reports whether ZooKeeper allows no r in the names of nodes.
func isForbidden(r rune) bool {
	return r < 0x20 || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}
