package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/wait"
)

// A Relay takes messages out of a database. It is safe for concurrent use, and a
// prometheus.Collector that counts the messages in the database, for a second at most.
type Relay struct {
	*metrics

	loop  *loop
	begin context.CancelFunc // of the end
	drain time.Duration
}

var _ prometheus.Collector = (*Relay)(nil)

// New returns a Relay on the tables of db, which [Migrate] creates, and starts it. It does not wait
// for the database. The caller closes the Relay before the publishers of its Routes, and db.
func New(db *gorm.DB, cfg Config) (*Relay, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	base, err := message.Open(db, "relay")
	if err != nil {
		return nil, err
	}
	t := table{db: base, owner: uuid.NewString()}
	closing, begin := context.WithCancel(context.Background())
	r := &Relay{metrics: newMetrics(cfg.Name, t), begin: begin, drain: cfg.limits.drain}
	r.loop = newLoop(closing, cfg, t, r.metrics)
	go r.loop.run()
	return r, nil
}

func newLoop(closing context.Context, cfg Config, t table, m *metrics) *loop {
	l := &loop{
		cfg: cfg, table: t, metrics: m, window: newWindow(),
		lanes:    newLanes(t, cfg.limits.lease),
		results:  make(chan result, cfg.limits.rows),
		done:     make(chan struct{}),
		outages:  make(map[string]*outage),
		rowSize:  message.MaxBody,
		busy:     make(map[string]int),
		accepted: make(map[string]int64),
		backoff:  wait.Backoff{Min: minPause, Max: maxPause},
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.reporter = newReporter(cfg)
	routes := make(map[string]Route, len(cfg.Routes))
	for _, r := range cfg.Routes {
		routes[r.Topic] = r
	}
	l.courier = courier{cfg: cfg, lanes: l.lanes, routes: routes, results: l.results, closing: closing}
	return l
}

// Close ends the relay: it sends no more messages, waits for those under way, and gives its lanes to
// other relays. Messages that were not sent stay stored. If ctx ends first, the calls under way are
// cancelled, and their messages will be sent again; Close returns an error that matches ctx.Err().
// If ctx has no deadline, Close ends after 10 seconds. Then it waits for the events of dead letters, until
// ctx ends but for 2 seconds at most, and logs those that it could not publish: that is no error. A
// call or a Config.Publisher that ignores its context may go on after Close. It may be called again.
func (r *Relay) Close(ctx context.Context) error {
	if _, bounded := ctx.Deadline(); !bounded {
		limited, cancel := context.WithTimeout(ctx, r.drain)
		defer cancel()
		ctx = limited
	}
	r.begin()
	select {
	case <-r.loop.done:
		r.loop.reporter.close(ctx)
		return nil
	case <-ctx.Done():
	}
	r.loop.stop()
	defer r.loop.reporter.close(ctx)
	select {
	case <-r.loop.done:
	case <-time.After(time.Second): // a call that does not end with its context
	}
	return fmt.Errorf("relay: close: %w", ctx.Err())
}
