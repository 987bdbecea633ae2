package dispatch

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	sent    *prometheus.CounterVec
	last    *prometheus.GaugeVec
	pending *prometheus.GaugeVec
}

const (
	resultSent   = "sent"
	resultFailed = "failed"
)

func newMetrics(receivers []string) *metrics {
	m := &metrics{
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "belay_monitor_notifications_total",
			Help: "Messages to receivers, by result: sent, failed.",
		}, []string{"receiver", "result"}),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "belay_monitor_last_notification_timestamp_seconds",
			Help: "When a receiver took a message last; 0 if it has not since the start.",
		}, []string{"receiver"}),
		pending: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "belay_monitor_notifications_pending",
			Help: "Messages that are due and not delivered.",
		}, []string{"receiver"}),
	}
	for _, name := range receivers {
		m.sent.WithLabelValues(name, resultSent)
		m.sent.WithLabelValues(name, resultFailed)
		m.last.WithLabelValues(name)
		m.pending.WithLabelValues(name)
	}
	return m
}

func (m *metrics) count(receiver string, at time.Time, err error) {
	if err != nil {
		m.sent.WithLabelValues(receiver, resultFailed).Inc()
		return
	}
	m.sent.WithLabelValues(receiver, resultSent).Inc()
	m.last.WithLabelValues(receiver).Set(float64(at.UnixMilli()) / 1e3)
}

// Describe implements prometheus.Collector.
func (d *Dispatcher) Describe(ch chan<- *prometheus.Desc) {
	d.metrics.sent.Describe(ch)
	d.metrics.last.Describe(ch)
	d.metrics.pending.Describe(ch)
}

// Collect implements prometheus.Collector.
func (d *Dispatcher) Collect(ch chan<- prometheus.Metric) {
	d.metrics.sent.Collect(ch)
	d.metrics.last.Collect(ch)
	d.metrics.pending.Collect(ch)
}
