package outbox

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// countTimeout limits how long a scrape waits for the size of the backlog.
const countTimeout = time.Second

type metrics struct {
	backlog, oldest *prometheus.Desc

	stored, inserts, published, direct, lost, unreadable, heartbeats prometheus.Counter
}

func newMetrics(name string) *metrics {
	labels := prometheus.Labels{"name": name}
	counter := func(metric, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "belay_outbox_" + metric, Help: help, ConstLabels: labels})
	}
	return &metrics{
		backlog: prometheus.NewDesc("belay_outbox_backlog",
			"Events in the table, at most 100000; missing when the table cannot be read.", nil, labels),
		oldest: prometheus.NewDesc("belay_outbox_oldest_event_timestamp_seconds",
			"When the oldest event in the table was stored; missing when there is none, or the table cannot be read.", nil, labels),
		stored:     counter("stored_total", "Events stored by this process."),
		inserts:    counter("inserts_total", "INSERT statements for the events of this process."),
		published:  counter("published_total", "Stored events that the relay of this process published."),
		direct:     counter("direct_total", "Events published without being stored, since the table could not be written."),
		lost:       counter("lost_total", "Events neither stored nor published, only logged."),
		unreadable: counter("unreadable_total", "How often this process found a row that is no event, and set it aside for an hour."),
		heartbeats: counter("heartbeats_total", "Heartbeats sent."),
	}
}

func (m *metrics) counters() []prometheus.Counter {
	return []prometheus.Counter{m.stored, m.inserts, m.published, m.direct, m.lost, m.unreadable, m.heartbeats}
}

func (m *metrics) describe(descs chan<- *prometheus.Desc) {
	descs <- m.backlog
	descs <- m.oldest
	for _, c := range m.counters() {
		c.Describe(descs)
	}
}

// collect asks the database about the backlog, for countTimeout at most.
func (m *metrics) collect(samples chan<- prometheus.Metric, t table) {
	for _, c := range m.counters() {
		c.Collect(samples)
	}
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	if n, err := t.count(ctx); err == nil {
		samples <- prometheus.MustNewConstMetric(m.backlog, prometheus.GaugeValue, float64(n))
	}
	if at, err := t.oldest(ctx); err == nil && at > 0 {
		samples <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue, at)
	}
}
