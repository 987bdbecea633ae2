package etcdlock

import (
	"cmp"
	"fmt"
	"log/slog"
	"unicode/utf8"

	"github.com/belaygo/belay/internal/background"
)

// Config adjusts an engine. The zero value is useful.
type Config struct {
	// Prefix is what the names of all locks in etcd begin with. All processes that share locks
	// must have the same. Defaults to "belay/lock/".
	Prefix string
	// Name is the node of all locks in errors, events and metrics. Defaults to "etcd".
	Name string
	// Logger gets a warning when a lock that was not renewed can't be deleted, and when etcd has
	// lost writes. Defaults to slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	c.Prefix = cmp.Or(c.Prefix, "belay/lock/")
	c.Name = cmp.Or(c.Name, "etcd")
	c.Logger = background.Logger(c.Logger)
	if !utf8.ValidString(c.Name) {
		return c, fmt.Errorf("etcdlock: Config.Name %q is not UTF-8", c.Name)
	}
	return c, nil
}
