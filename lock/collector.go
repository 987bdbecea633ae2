package lock

import "github.com/prometheus/client_golang/prometheus"

// Describe implements prometheus.Collector.
func (l *Locker) Describe(ch chan<- *prometheus.Desc) {
	m := l.metrics
	m.acquires.Describe(ch)
	m.seconds.Describe(ch)
	for _, d := range []*prometheus.Desc{m.handOversDesc, m.renewalsDesc, m.lostDesc, m.heldDesc, m.orphansDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (l *Locker) Collect(ch chan<- prometheus.Metric) {
	m := l.metrics
	m.acquires.Collect(ch)
	m.seconds.Collect(ch)
	count := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	count(m.handOversDesc, m.handOvers.Load())
	count(m.renewalsDesc, m.renewals.Load(), "ok")
	count(m.renewalsDesc, m.renewalsFailed.Load(), "failed")
	for why := range lostReasons {
		count(m.lostDesc, m.lost[why].Load(), lostNames[why])
	}

	l.mu.Lock()
	held, orphans := len(l.grants), len(l.orphans.all)
	l.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(m.heldDesc, prometheus.GaugeValue, float64(held))
	ch <- prometheus.MustNewConstMetric(m.orphansDesc, prometheus.GaugeValue, float64(orphans))
}
