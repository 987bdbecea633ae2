package selfcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// Sender sends one message. *receiver.Receiver implements it.
type Sender interface {
	Name() string
	Send(ctx context.Context, n *receiver.Notification) error
}

// Log remembers what was sent across restarts. Notifications of no id are those of all.
// *store.Store implements it.
type Log interface {
	Notifications(ctx context.Context, incidentID string, n int) ([]store.Notification, error)
	AddNotifications(ctx context.Context, list []store.Notification) error
}

// Route is a receiver with what is sent to it.
type Route struct {
	To         Sender
	Failures   bool          // whether to send failures
	Delay      time.Duration // added to Config.After
	Repeat     time.Duration // how long after a message a failure that goes on is sent again; required
	Resolved   bool          // whether to send that a failure is over
	Continuous bool          // the receiver forgets what is not repeated; repeats are not stored
	Watchdog   time.Duration // between two watchdog messages; 0 = none
}

// Config configures a Check.
type Config struct {
	Parts       []Part
	Routes      []Route
	After       time.Duration // how long a part must fail; default: a minute
	Log         Log           // required
	ExternalURL string        // of the page, without a slash at the end; empty = no links
	DocsURL     string        // of the documentation, with a slash at the end; empty = no links
	Logger      *slog.Logger  // default: slog.Default()
}

// Check checks the parts and reports their failures.
type Check struct {
	cfg   Config
	parts []*watched
}

// New returns a Check, which does nothing before Run.
func New(cfg Config) (*Check, error) {
	if cfg.Log == nil {
		return nil, errors.New("selfcheck: Config.Log is nil")
	}
	cfg.After = cmp.Or(cfg.After, time.Minute)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default()) //nolint:forbidigo // the default of every Config
	c := &Check{cfg: cfg}
	for _, p := range cfg.Parts {
		c.parts = append(c.parts, newWatched(p, cfg.After))
	}
	for i, r := range cfg.Routes {
		if r.To == nil || r.Repeat <= 0 {
			return nil, fmt.Errorf("selfcheck: Config.Routes[%d] has no receiver or no Repeat", i)
		}
	}
	return c, nil
}

// Run checks and sends until ctx ends, and returns nil.
func (c *Check) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, p := range c.parts {
		wg.Go(func() { p.run(ctx) })
	}
	wg.Go(func() { c.logFailures(ctx) })
	for _, r := range c.cfg.Routes {
		wg.Go(func() { c.newCourier(r).run(ctx) })
	}
	wg.Wait()
	return nil
}

// logFailures writes a line when a part fails, and when it works again.
func (c *Check) logFailures(ctx context.Context) {
	failed := make(map[string]bool)
	everyRound(ctx, func() {
		for _, p := range c.parts {
			s, _ := p.look(time.Now())
			switch {
			case s.failed && !failed[p.Name]:
				c.cfg.Logger.LogAttrs(ctx, slog.LevelError, "guard-monitor is blind", slog.String("part", p.Name), slog.Any("error", s.err))
			case !s.failed && failed[p.Name]:
				c.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "guard-monitor is no longer blind", slog.String("part", p.Name))
			}
			failed[p.Name] = s.failed
		}
	})
}

// everyRound calls f each second until ctx ends.
func everyRound(ctx context.Context, f func()) {
	tick := time.NewTicker(round)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f()
		}
	}
}
