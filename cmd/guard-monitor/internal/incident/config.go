package incident

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

// Store is what a Tracker reads and writes. *store.Store is one.
type Store interface {
	Ungrouped(ctx context.Context, limit int) ([]Received, error)
	GroupedSince(ctx context.Context, since time.Time, seq int64, limit int) ([]Received, error)
	Writers(ctx context.Context, key string, from, to time.Time) ([]Received, error)
	DegradedEvents(ctx context.Context, service string, from, to time.Time) ([]Received, error)
	TimelineSince(ctx context.Context, cluster string, since time.Time) ([]watch.Entry, time.Time, error)
	TimelineAfter(ctx context.Context, id int64) ([]watch.Entry, error)
	OpenIncidents(ctx context.Context) ([]Incident, error)
	Incident(ctx context.Context, id string) (Incident, error)
	LastIncident(ctx context.Context, key string) (Incident, error)
	Heartbeats(ctx context.Context) ([]Heartbeat, error)
	Switches(ctx context.Context, since time.Time) ([]Switch, error)
	Messages(ctx context.Context) ([]Messages, error)
	// Calls returns how many calls are not settled, as Messages does.
	Calls(ctx context.Context) ([]Calls, error)
	Clocks(ctx context.Context, least time.Duration) ([]Clock, error)
	Apply(ctx context.Context, saved []Incident, moves []Move) error
}

// Locator finds where a lock is kept. *watch.Watcher is one.
type Locator interface {
	Locate(notify.Place) (watch.Location, bool)
}

// Config configures a Tracker. Store is required.
type Config struct {
	Store   Store
	Locator Locator         // default: no Redis is watched
	Ready   <-chan struct{} // the Locator knows; default: at once
	// Connected reports whether events can arrive. Default: they always can.
	Connected func() bool
	// Listening returns 0 while not both events and heartbeats can arrive, and else a number that is
	// another one after each break. Default: they always can.
	Listening func() int
	// RejectedAt returns when a heartbeat of a service was, or may have been, rejected last
	// because its sender was over its limits. It returns zero if that never happened, as does
	// the default.
	RejectedAt func(service string) time.Time

	// Every is how often the Tracker looks for something new. Default 1 s.
	Every time.Duration
	// Settle is how long after its arrival an event is explained: what the
	// watcher sees takes a moment. Default 2 s; negative = at once.
	Settle time.Duration
	// Quiet is how long after its last event an incident is resolved. Default
	// 10 m.
	Quiet time.Duration
	// SilentAfter is the least time without a heartbeat that makes a service
	// silent; it must have missed three besides. Default 30 s, and at least ten rounds:
	// a Tracker that stood still for this long knows nothing of the time.
	SilentAfter time.Duration
	Logger      *slog.Logger // default: silent
}

// leastRounds is how many rounds SilentAfter is at least: one round is always later than Every.
const leastRounds = 10

func (c Config) withDefaults() Config {
	if c.Connected == nil {
		c.Connected = func() bool { return true }
	}
	if c.Listening == nil {
		c.Listening = func() int { return 1 }
	}
	if c.RejectedAt == nil {
		c.RejectedAt = func(string) time.Time { return time.Time{} }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Every, c.Settle = cmp.Or(c.Every, time.Second), cmp.Or(c.Settle, 2*time.Second)
	c.Quiet = cmp.Or(c.Quiet, 10*time.Minute)
	c.SilentAfter = max(cmp.Or(c.SilentAfter, 30*time.Second), leastRounds*c.Every)
	return c
}

// Tracker makes incidents of what the store has. What it does not get to
// because it is stopped, or because the store fails, it does later: the events
// wait in the store, and it keeps nothing that is not there. What of it was news,
// another Tracker does not know: to it, all that is recent is.
type Tracker struct {
	cfg      Config
	entry    int64 // the last timeline entry that was looked at
	news     news
	clocks   clocks
	revised  time.Time // when recent events were explained again
	listened time.Time // when the last round was
	reading  time.Time // since when events could arrive without a break; zero = they can't now
	heardAll time.Time // the same of events and heartbeats
	session  int       // what Listening returned last
}
