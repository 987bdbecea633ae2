package rabbitmq

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sony/gobreaker/v2"
)

type publisherMetrics struct {
	published   *prometheus.CounterVec
	connections prometheus.Counter
	connected   prometheus.Gauge
	breaker     prometheus.GaugeFunc
}

// The results of a Publish.
const (
	confirmed  = "confirmed"
	unroutable = "unroutable"
	blocked    = "blocked"
	refused    = "refused"
	open       = "open"
	failed     = "failed"
)

func newPublisherMetrics(name string, state func() gobreaker.State) *publisherMetrics {
	labels := prometheus.Labels{"name": name}
	m := &publisherMetrics{
		published: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "belay_rabbitmq_published_total", Help: "Events given to Publish, by result.", ConstLabels: labels,
		}, []string{"result"}),
		connections: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "belay_rabbitmq_connections_total", Help: "Connections opened by the publisher.", ConstLabels: labels,
		}),
		connected: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "belay_rabbitmq_connected", Help: "1 while the publisher is connected.", ConstLabels: labels,
		}),
		breaker: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "belay_rabbitmq_breaker_state", Help: "Of the circuit breaker: 0 closed, 1 half open, 2 open.", ConstLabels: labels,
		}, func() float64 { return float64(state()) }),
	}
	for _, result := range []string{confirmed, unroutable, blocked, refused, open, failed} {
		m.published.WithLabelValues(result)
	}
	return m
}

func (m *publisherMetrics) count(err error) {
	result := failed
	switch {
	case err == nil:
		result = confirmed
	case errors.Is(err, ErrUnroutable):
		result = unroutable
	case errors.Is(err, ErrBlocked):
		result = blocked
	case errors.Is(err, ErrRefused):
		result = refused
	case errors.Is(err, ErrOpen):
		result = open
	}
	m.published.WithLabelValues(result).Inc()
}

func (m *publisherMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.published, m.connections, m.connected, m.breaker}
}

// Describe implements prometheus.Collector.
func (p *Publisher) Describe(descs chan<- *prometheus.Desc) {
	for _, c := range p.metrics.all() {
		c.Describe(descs)
	}
}

// Collect implements prometheus.Collector.
func (p *Publisher) Collect(metrics chan<- prometheus.Metric) {
	for _, c := range p.metrics.all() {
		c.Collect(metrics)
	}
}
