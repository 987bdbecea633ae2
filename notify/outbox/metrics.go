package outbox

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/internal/metric"
)

// countTimeout limits how long a scrape waits for the size of the backlog.
const countTimeout = time.Second

// set is unexported, so that the types that embed it gain methods and no field.
type set = metric.Set

type metrics struct {
	set

	stored, inserts, published, direct, lost, unreadable, refused, heartbeats prometheus.Counter
}

func newMetrics(name string, t table) *metrics {
	f := metric.Factory{Labels: prometheus.Labels{"name": name}}
	m := &metrics{
		stored:     f.Counter("belay_outbox_stored_total", "Events stored by this process."),
		inserts:    f.Counter("belay_outbox_inserts_total", "INSERT statements for the events of this process."),
		published:  f.Counter("belay_outbox_published_total", "Stored events that the relay of this process published."),
		direct:     f.Counter("belay_outbox_direct_total", "Events published without being stored, since the table could not be written."),
		lost:       f.Counter("belay_outbox_lost_total", "Events neither stored nor published, only logged."),
		unreadable: f.Counter("belay_outbox_unreadable_total", "How often this process found a row that is no event, and set it aside for an hour."),
		refused:    f.Counter("belay_outbox_refused_total", "How often the destination refused a stored event and may take others; it is tried again within 10 minutes."),
		heartbeats: f.Counter("belay_outbox_heartbeats_total", "Heartbeats sent."),
	}
	m.set = append(f.Set, &backlog{
		table: t,
		size: prometheus.NewDesc("belay_outbox_backlog",
			"Events in the table, at most 100000; missing when the table cannot be read.", nil, f.Labels),
		oldest: prometheus.NewDesc("belay_outbox_oldest_event_timestamp_seconds",
			"When the oldest event in the table was stored; missing when there is none, or the table cannot be read.", nil, f.Labels),
	})
	return m
}

// A backlog collects the metrics of the rows in the table.
type backlog struct {
	table        table
	size, oldest *prometheus.Desc
}

func (b *backlog) Describe(descs chan<- *prometheus.Desc) {
	descs <- b.size
	descs <- b.oldest
}

// Collect queries the database, for countTimeout at most.
func (b *backlog) Collect(samples chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	if n, err := b.table.count(ctx); err == nil {
		samples <- prometheus.MustNewConstMetric(b.size, prometheus.GaugeValue, float64(n))
	}
	if at, err := b.table.oldest(ctx); err == nil && at > 0 {
		samples <- prometheus.MustNewConstMetric(b.oldest, prometheus.GaugeValue, at)
	}
}
