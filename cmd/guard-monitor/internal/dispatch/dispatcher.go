package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

const (
	round = time.Second // between two looks at the store
	// planEvery is the longest time between two plans, whatever has changed or is due: the
	// clock may have been set.
	planEvery = time.Minute
)

// Store has the incidents, and what was sent of them. *store.Store implements it.
type Store interface {
	Current(ctx context.Context) (store.Snapshot, error)
	Told(ctx context.Context, receiver string, incidents []string) (map[string]store.Told, error)
	AddNotifications(ctx context.Context, list []store.Notification) error
}

// Sender sends one message. *receiver.Receiver implements it.
type Sender interface {
	Name() string
	Send(ctx context.Context, n *receiver.Notification) error
}

// Route is a receiver, with what is sent to it and when.
type Route struct {
	To             Sender
	Services       []string // whose incidents; empty, or with "*" = of all
	Severities     []string // empty = all
	GroupBy        []string // labels: service, cause, cluster, shard, severity
	GroupWait      time.Duration
	GroupInterval  time.Duration
	RepeatInterval time.Duration
	Resolved       bool // whether to send that an incident is over
	RatePerMinute  int  // 0 = no limit
	MaxAlerts      int  // in one message; 0 = no limit
	// EscalateAfter is how long an incident must be open without an acknowledgement before
	// it is sent. 0 = it is sent in any case.
	EscalateAfter time.Duration
	// Continuous is for a receiver that forgets what is not repeated all the time.
	// Repeats are not logged, unless they have other labels.
	Continuous bool
	// Keyed is for a receiver that knows an alert by its labels. When they change, it is sent the end
	// of what it was sent before, if Resolved is set.
	Keyed bool
}

// Config configures a Dispatcher.
type Config struct {
	Store       Store // required
	Routes      []Route
	ExternalURL string       // of the page, without a slash at the end; empty = no links
	DocsURL     string       // of the documentation, with a slash at the end
	Logger      *slog.Logger // default: slog.Default()
}

// Dispatcher sends incidents to receivers. It is a prometheus.Collector.
type Dispatcher struct {
	cfg     Config
	metrics *metrics
}

// New returns a Dispatcher, which does nothing before Run.
func New(cfg Config) (*Dispatcher, error) {
	if cfg.Store == nil {
		return nil, errors.New("dispatch: Config.Store is nil")
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	var names []string
	for i, r := range cfg.Routes {
		switch {
		case r.To == nil:
			return nil, fmt.Errorf("dispatch: Config.Routes[%d].To is nil", i)
		case slices.Contains(names, r.To.Name()):
			return nil, fmt.Errorf("dispatch: Config.Routes[%d]: the name %q is taken", i, r.To.Name())
		case r.RepeatInterval <= 0:
			return nil, fmt.Errorf("dispatch: Config.Routes[%d].RepeatInterval is %v", i, r.RepeatInterval)
		}
		names = append(names, r.To.Name())
	}
	return &Dispatcher{cfg: cfg, metrics: newMetrics(names)}, nil
}
