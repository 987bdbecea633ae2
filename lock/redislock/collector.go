package redislock

import "github.com/prometheus/client_golang/prometheus"

// Describe implements prometheus.Collector.
func (e *engine) Describe(ch chan<- *prometheus.Desc) {
	m := e.metrics
	for _, d := range []*prometheus.Desc{m.requestsDesc, m.breakerDesc, m.watchedDesc, m.connsDesc, m.trackedDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (e *engine) Collect(ch chan<- prometheus.Metric) {
	m := e.metrics
	for s, counts := range m.requests {
		for r := range results {
			ch <- prometheus.MustNewConstMetric(m.requestsDesc, prometheus.CounterValue,
				float64(counts[r].Load()), s.name, resultNames[r])
		}
	}
	gauge := func(d *prometheus.Desc, n float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, labels...)
	}
	if r, ok := e.sender.(*router); ok {
		for _, n := range r.all() {
			gauge(m.breakerDesc, n.breaker.open(), n.addr())
		}
	}
	topics, conns := e.waker.counts()
	gauge(m.watchedDesc, float64(topics))
	gauge(m.connsDesc, float64(conns))
	gauge(m.trackedDesc, float64(e.tracker.count()))
}
