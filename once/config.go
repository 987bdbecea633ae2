package once

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/belaygo/belay/internal/background"
)

// PurgerConfig sets up a Purger. The zero value is valid.
type PurgerConfig struct {
	// Name identifies the Purger in metrics, if a process has several. Defaults to "purger".
	Name string
	// Keep is how long requests are kept: a repeat that comes later takes effect again. A Purger
	// deletes the requests of all services that share the tables, so that the shortest Keep of all
	// counts, also while a longer one is rolled out. Defaults to 72 hours.
	Keep time.Duration
	// KeepAnswers is how long answers are kept, at most Keep: a repeat that comes later
	// gets guard.ErrDuplicate instead. Those of guard.Refuse are kept for Keep, since their requests
	// have not taken effect. The shortest of all Purgers counts, too. Defaults to 24 hours, or Keep
	// if that is less.
	KeepAnswers time.Duration
	// Every is the time between two purges. Defaults to 1 minute.
	Every time.Duration
	// Batch is how many rows are deleted at once. Defaults to 1000.
	Batch int
	// Logger gets a warning when purges begin to fail. Defaults to slog.Default().
	Logger *slog.Logger
}

func (c PurgerConfig) withDefaults() PurgerConfig {
	c.Name = cmp.Or(c.Name, "purger")
	c.Keep = cmp.Or(c.Keep, 72*time.Hour)
	c.KeepAnswers = cmp.Or(c.KeepAnswers, min(24*time.Hour, c.Keep))
	c.Every = cmp.Or(c.Every, time.Minute)
	c.Batch = cmp.Or(c.Batch, 1000)
	c.Logger = background.Logger(c.Logger)
	return c
}

func (c PurgerConfig) validate() error {
	switch {
	case !utf8.ValidString(c.Name):
		return fmt.Errorf("once: Name %q is not UTF-8", c.Name)
	case c.Keep < time.Minute:
		return fmt.Errorf("once: Keep %v is less than a minute", c.Keep)
	case c.KeepAnswers < time.Second || c.KeepAnswers > c.Keep:
		return fmt.Errorf("once: KeepAnswers %v is outside 1s to Keep, %v", c.KeepAnswers, c.Keep)
	case c.Every < time.Second:
		return fmt.Errorf("once: Every %v is less than a second", c.Every)
	case c.Batch < 1 || c.Batch > maxBatch:
		return fmt.Errorf("once: Batch %d is outside 1 to %d", c.Batch, maxBatch)
	}
	return nil
}
