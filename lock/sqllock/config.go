package sqllock

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/belaygo/belay/internal/background"
)

// Config adjusts an engine. The zero value is useful.
type Config struct {
	// Name is the node of all locks in errors, events and metrics. Defaults to "sql".
	Name string
	// PollFrom and PollTo are the time between two looks at the keys that callers wait
	// for: PollFrom at first, and longer, up to PollTo, while none becomes free. They
	// default to 50 and 250 milliseconds.
	PollFrom, PollTo time.Duration
	// Logger gets a warning when old rows cannot be deleted, and panics of the driver. Defaults to
	// slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	c.Name = cmp.Or(c.Name, "sql")
	c.PollFrom = cmp.Or(c.PollFrom, 50*time.Millisecond)
	c.PollTo = cmp.Or(c.PollTo, max(c.PollFrom, 250*time.Millisecond))
	c.Logger = background.Logger(c.Logger)
	switch {
	case !utf8.ValidString(c.Name):
		return c, fmt.Errorf("sqllock: Config.Name %q is not UTF-8", c.Name)
	case c.PollFrom < time.Millisecond || c.PollTo < c.PollFrom:
		return c, fmt.Errorf("sqllock: Config.PollFrom %v is less than a millisecond, or more than PollTo %v", c.PollFrom, c.PollTo)
	}
	return c, nil
}
