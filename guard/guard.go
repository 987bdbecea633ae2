package guard

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/elapsed"
	"github.com/belaygo/belay/internal/sqlfront"
	"github.com/belaygo/belay/lock"
)

// Guard runs operations that must take effect once. It is safe for concurrent
// use, and a prometheus.Collector.
type Guard struct {
	db       *gorm.DB
	sql      *sqlfront.Handle
	cfg      Config
	policy   atomic.Int64
	running  *running
	reporter *reporter
	layer    *firstLayer
	crews    *crews
	canary   *canary
	gate     *gate
	calls    *undecided
	metrics  *metrics
	clock    elapsed.Clock
	halt     context.CancelFunc // of what runs between operations
}

// New returns a Guard for operations on db under the locks of locker. It
// installs dbguard on db, and asks no server for anything.
//
// The caller owns db, locker and the publisher. Close in this order: the Guard,
// the Locker, the Publisher, the database.
func New(db *gorm.DB, locker *lock.Locker, cfg Config) (*Guard, error) {
	if locker == nil {
		return nil, errors.New("guard: locker is nil")
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := dbtx.Install(db); err != nil {
		return nil, err
	}
	family, err := dialect.Told(db.Name(), string(cfg.Family))
	if err != nil {
		return nil, fmt.Errorf("guard: Config.Family: %w", err)
	}
	cfg.Family = Family(family)
	m := newMetrics(cfg.Name)
	if cfg.Calls {
		m.backlog = newBacklog(db, cfg.Name)
	}
	r := &reporter{cfg, m}
	running := newRunning()
	ctx, halt := context.WithCancel(context.Background())
	g := &Guard{
		db:       db,
		sql:      dbtx.NewHandle(db.DB),
		cfg:      cfg,
		running:  running,
		reporter: r,
		layer: &firstLayer{
			locker:   locker,
			outages:  newOutages(ctx, locker.Engine(), r, running),
			refusals: newRefusals(ctx, locker.Engine(), r, running),
			cfg:      cfg,
			metrics:  m,
		},
		canary:  newCanary(ctx, db, r, running),
		gate:    newGate(db),
		crews:   &crews{turnTime: turnTime, folding: folding{db: db}},
		metrics: m,
		halt:    halt,
	}
	g.policy.Store(int64(cfg.OnUnavailable))
	g.calls = newUndecided(ctx, db, r, running)
	return g, nil
}

// SetPolicy changes Config.OnUnavailable for calls that begin from now on: while Redis is
// away, to let operations go on, or to stop them again.
func (g *Guard) SetPolicy(p Policy) error {
	if !p.valid() {
		return fmt.Errorf("guard: policy is %d, want FailClosed or DBOnly", p)
	}
	if was := Policy(g.policy.Swap(int64(p))); was != p {
		g.cfg.Logger.Warn("the policy for an unavailable lock has changed", "from", was.String(), "to", p.String())
	}
	return nil
}

// Policy returns what Do does now while the lock can't be asked for.
func (g *Guard) Policy() Policy { return Policy(g.policy.Load()) }

// Ping reports whether operations can go on: whether the database answers and, unless the
// policy is DBOnly, the first layer, too. It is fit for a readiness probe.
func (g *Guard) Ping(ctx context.Context) error {
	pool, err := g.db.DB()
	if err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	if err := pool.PingContext(ctx); err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	if g.Policy() == DBOnly {
		return nil
	}
	return ping(ctx, g.layer.locker.Engine())
}

// Close refuses new calls of Do and waits until those that run have ended, or
// ctx ends; then it returns ctx's error. It may be called again.
func (g *Guard) Close(ctx context.Context) error {
	g.halt()
	err := g.running.close(ctx)
	return errors.Join(err, g.sql.Close())
}

// Describe implements prometheus.Collector.
func (g *Guard) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range g.metrics.all() {
		c.Describe(ch)
	}
	ch <- g.metrics.outages
	ch <- g.metrics.queued
}

// Collect implements prometheus.Collector.
func (g *Guard) Collect(ch chan<- prometheus.Metric) {
	for _, c := range g.metrics.all() {
		c.Collect(ch)
	}
	ch <- prometheus.MustNewConstMetric(g.metrics.outages, prometheus.GaugeValue, float64(g.layer.outages.n.Load()))
	ch <- prometheus.MustNewConstMetric(g.metrics.queued, prometheus.GaugeValue, float64(g.gate.queued.Load()))
}
