package once

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// readTimeout limits how long a scrape waits for the database.
const readTimeout = time.Second

// ages is how old the oldest rows are, as a metric.
type ages struct {
	tables tables
	oldest *prometheus.Desc
}

func newAges(t tables, labels prometheus.Labels) *ages {
	return &ages{t, prometheus.NewDesc("belay_once_oldest_seconds",
		"Age of the oldest row, by table, refusals left out; missing when there is none, or the table cannot be read.", []string{"table"}, labels)}
}

func (a *ages) Describe(descs chan<- *prometheus.Desc) { descs <- a.oldest }

// Collect queries the database, for readTimeout at most.
func (a *ages) Collect(samples chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	for _, table := range []string{"belay_answer", "belay_once"} {
		var age float64
		if err := a.tables.db.QueryRow(ctx, fmt.Sprintf(a.tables.age, aging(table)), nil, &age); err == nil {
			samples <- prometheus.MustNewConstMetric(a.oldest, prometheus.GaugeValue, age, table)
		}
	}
}
