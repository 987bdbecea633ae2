package guard

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/pending"
	"github.com/belaygo/belay/internal/sqldb"
)

// scrapeTimeout limits how long a scrape waits for the database.
const scrapeTimeout = time.Second

// A backlog collects the metrics of what is pending in the database, with Config.Calls.
type backlog struct {
	db                         *gorm.DB
	pending, oldest, undecided *prometheus.Desc
}

func newBacklog(db *gorm.DB, name string) *backlog {
	desc := func(metric, help string) *prometheus.Desc {
		return prometheus.NewDesc("belay_guard_"+metric, help+"; missing when the table cannot be read.", nil, prometheus.Labels{"name": name})
	}
	return &backlog{
		db:        db,
		pending:   desc("pending_calls", "Requests of a Call that are not settled, at most 10000"),
		oldest:    desc("oldest_pending_call_seconds", "Age of the oldest of them that is not undecided, 0 if there is none"),
		undecided: desc("undecided_calls", "Those of them for which nobody calls any more, and that have no result"),
	}
}

// Describe implements prometheus.Collector.
func (b *backlog) Describe(ch chan<- *prometheus.Desc) {
	ch <- b.pending
	ch <- b.oldest
	ch <- b.undecided
}

// Collect implements prometheus.Collector. It asks the database, for scrapeTimeout at most.
func (b *backlog) Collect(ch chan<- prometheus.Metric) {
	pool, err := b.db.DB()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	d, _ := sqldb.Of(b.db.Name())
	n, err := pending.Count(ctx, sqldb.New(pool, d))
	if err != nil {
		return
	}
	gauge := func(desc *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v)
	}
	gauge(b.pending, float64(n.Pending))
	gauge(b.oldest, n.Oldest.Seconds())
	gauge(b.undecided, float64(n.Undecided))
}
