package once

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/claim"
	"github.com/belaygo/belay/internal/metric"
	"github.com/belaygo/belay/internal/sqldb"
)

const (
	// maxBatch is bounded by the parameters of a statement: 65,535 on PostgreSQL, 32,766
	// on SQLite.
	maxBatch = 10_000
	// batchTimeout limits how long a batch is looked for, and how long it is deleted.
	batchTimeout = 30 * time.Second
)

// set is unexported, so that the types that embed it gain methods and no field.
type set = metric.Set

// A Purger deletes old requests and their answers. Any number of processes may have one. It
// is a prometheus.Collector.
type Purger struct {
	set

	tables   tables
	cfg      PurgerConfig
	purged   *prometheus.CounterVec
	failures prometheus.Counter
	failing  bool // the last purge has failed

	cancel context.CancelFunc
	closed chan struct{}
}

// NewPurger returns a Purger that works until Close.
func NewPurger(db *gorm.DB, cfg PurgerConfig) (*Purger, error) {
	t, err := open(db)
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	f := metric.Factory{Labels: prometheus.Labels{"name": cfg.Name}}
	p := &Purger{
		tables: t, cfg: cfg, closed: make(chan struct{}),
		purged:   f.CounterVec("belay_once_purged_total", "Old rows that this process deleted, by table.", "table"),
		failures: f.Counter("belay_once_purge_failures_total", "Purges of this process that failed."),
	}
	p.set = append(f.Set, newAges(t, f.Labels))
	for _, table := range []string{"belay_answer", "belay_once"} {
		p.purged.WithLabelValues(table)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go p.run(ctx)
	return p, nil
}

// Close ends the Purger and waits until it has stopped, or ctx ends.
func (p *Purger) Close(ctx context.Context) error {
	p.cancel()
	select {
	case <-p.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("once: close purger: %w", ctx.Err())
	}
}

func (p *Purger) run(ctx context.Context) {
	defer close(p.closed)
	tick := time.NewTicker(p.cfg.Every)
	defer tick.Stop()
	for {
		err := background.Do(p.cfg.Logger, "purge old requests", func() error { return p.purge(ctx) })
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			p.failures.Inc()
			if !p.failing {
				p.cfg.Logger.Warn("old requests can't be purged", "error", err)
			}
		}
		p.failing = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// purge deletes old answers, and then old claims with what is left of their answers.
func (p *Purger) purge(ctx context.Context) error {
	if err := p.empty(ctx, "belay_answer", p.cfg.KeepAnswers); err != nil {
		return err
	}
	return p.empty(ctx, "belay_once", p.cfg.Keep)
}

// empty deletes the rows of a table that are older than keep. After each batch it rests for
// as long as the batch took.
func (p *Purger) empty(ctx context.Context, table string, keep time.Duration) error {
	for {
		begun := time.Now()
		requests, err := p.old(ctx, table, keep)
		if err != nil || len(requests) == 0 {
			return err
		}
		n, err := p.delete(ctx, table, keep, requests)
		p.purged.WithLabelValues(table).Add(float64(n))
		if err != nil || n == 0 || len(requests) < p.cfg.Batch {
			return err
		}
		select {
		case <-time.After(time.Since(begun)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// delete deletes the rows of requests that are still old: another purger may have deleted
// one, and the request may have been made again.
func (p *Purger) delete(ctx context.Context, table string, keep time.Duration, requests []any) (n int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	if table == "belay_once" {
		n, err = p.tables.deleteClaims(ctx, keep, requests)
	} else {
		n, err = p.tables.deleteAnswers(ctx, keep, requests)
	}
	if err != nil {
		return 0, fmt.Errorf("delete old rows of %s: %w", table, err)
	}
	return n, nil
}

// old returns the oldest requests, at most a batch.
func (p *Purger) old(ctx context.Context, table string, keep time.Duration) (requests []any, err error) {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	query := "SELECT request FROM (SELECT request, created_at FROM " + aging(table) + " ORDER BY created_at LIMIT ?) AS oldest WHERE " + p.tables.older
	err = p.tables.db.Query(ctx, query, []any{p.cfg.Batch, keep.Seconds()}, func(scan sqldb.Scan) error {
		var request []byte
		err := scan(&request)
		requests = append(requests, request)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find old rows of %s: %w", table, claim.Explain(err))
	}
	return requests, nil
}
