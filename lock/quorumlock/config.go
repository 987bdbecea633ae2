package quorumlock

import (
	"cmp"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/belaygo/belay/internal/lasting"
	"github.com/belaygo/belay/lock/lockengine"
)

// Config adjusts an engine. The zero value is useful.
type Config struct {
	// Name is the node of all locks in errors, events and metrics. Defaults to "quorum".
	Name string
	// NodeTimeout is how long one node has to answer before it counts as silent. If set, it
	// must be at most a tenth of the ttl of the locks: otherwise acquires and renewals fail
	// with lockengine.ErrDenied. Defaults to a second, or a quarter of the ttl if that is less.
	NodeTimeout time.Duration
	// Durable says that no node forgets a lock before it expires, even if its server crashes:
	// a database, or a Redis server with appendfsync always. If it is false, each node must
	// report when its server started, and does not vote until that is longer ago than a ttl:
	// see the package documentation. Defaults to false.
	Durable bool
}

// defaultTimeout is the NodeTimeout if none is set.
const defaultTimeout = time.Second

func (c Config) withDefaults() (Config, error) {
	c.Name = cmp.Or(c.Name, "quorum")
	switch {
	case !utf8.ValidString(c.Name):
		return c, fmt.Errorf("quorumlock: Config.Name %q is not UTF-8", c.Name)
	case c.NodeTimeout < 0:
		return c, fmt.Errorf("quorumlock: Config.NodeTimeout is %v", c.NodeTimeout)
	}
	return c, nil
}

// timeout returns how long a node has to answer a request that is about no ttl.
func (c Config) timeout() time.Duration { return cmp.Or(c.NodeTimeout, defaultTimeout) }

// timeoutOf returns how long a node has to answer a request about locks of this ttl.
func (c Config) timeoutOf(ttl time.Duration) (time.Duration, error) {
	if err := lasting.Check("quorumlock", ttl); err != nil {
		return 0, err
	}
	if c.NodeTimeout > ttl/10 {
		return 0, fmt.Errorf("%w: quorumlock: Config.NodeTimeout %v is more than a tenth of the ttl, %v", lockengine.ErrDenied, c.NodeTimeout, ttl)
	}
	return min(c.timeout(), ttl/4), nil
}
