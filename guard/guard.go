package guard

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/lock"
)

// Op is a business operation. It runs in one transaction, tx, and must use tx
// and ctx, not those of its surroundings: ctx ends when the lock is lost. When
// it returns an error, everything is rolled back.
type Op func(ctx context.Context, tx *gorm.DB) error

// Guard runs operations that must take effect once. It is safe for concurrent
// use, and a prometheus.Collector.
type Guard struct {
	db       *gorm.DB
	locker   *lock.Locker
	cfg      Config
	running  running
	outages  *outages
	refusals *refusals
	metrics  *metrics
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
	return &Guard{
		db:       db,
		locker:   locker,
		cfg:      cfg,
		running:  newRunning(),
		outages:  newOutages(cfg.DBOnlyLimit),
		refusals: newRefusals(),
		metrics:  newMetrics(cfg.Name),
	}, nil
}

// Do runs op once under the lock on key. See the error variables for what it
// returns. If op panics, everything is rolled back, the lock is released, and
// the panic goes on.
//
// Inside an operation, with its ctx, Do with the same key runs op in a savepoint
// of the same transaction: what it returns is op's own error, and judgement
// waits for the end of the outer Do. Another key there is an error, ErrNested.
func (g *Guard) Do(ctx context.Context, key string, op Op, opts ...Option) error {
	if op == nil {
		return errNilOp
	}
	return g.call(ctx, &call{guard: g, key: key, op: op}, opts)
}

// Apply makes change under the lock on key, as Do runs an operation. It runs the change
// again, up to three times under the same lock, when the database has rolled it back for
// a deadlock or the like.
func (g *Guard) Apply(ctx context.Context, key string, change Change, opts ...Option) error {
	c := &call{guard: g, key: key, op: change.Run}
	c.retries = changeTries
	return g.call(ctx, c, opts)
}

func (g *Guard) call(ctx context.Context, c *call, opts []Option) error {
	for _, opt := range opts {
		opt(&c.options)
	}
	if outer := dbtx.FromContext(ctx); outer != nil {
		return c.nest(ctx, outer)
	}
	if !g.running.enter() {
		return ErrClosed
	}
	defer g.running.leave()
	return c.do(ctx)
}

// Ping reports whether operations can go on: whether the database answers and, unless
// OnUnavailable is DBOnly, the first layer, too. It is fit for a readiness probe.
func (g *Guard) Ping(ctx context.Context) error {
	pool, err := g.db.DB()
	if err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	if err := pool.PingContext(ctx); err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	if g.cfg.OnUnavailable == DBOnly {
		return nil
	}
	return ping(ctx, g.locker.Engine())
}

// Close refuses new calls of Do and waits until those that run have ended, or
// ctx ends; then it returns ctx's error. It may be called again.
func (g *Guard) Close(ctx context.Context) error {
	g.outages.stop()
	return g.running.close(ctx)
}

// Describe implements prometheus.Collector.
func (g *Guard) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range g.metrics.all() {
		c.Describe(ch)
	}
	ch <- g.metrics.outages
}

// Collect implements prometheus.Collector.
func (g *Guard) Collect(ch chan<- prometheus.Metric) {
	for _, c := range g.metrics.all() {
		c.Collect(ch)
	}
	ch <- prometheus.MustNewConstMetric(g.metrics.outages, prometheus.GaugeValue, float64(g.outages.n.Load()))
}
