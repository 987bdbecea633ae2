package rabbitmq

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sony/gobreaker/v2"
)

type metrics struct {
	published   *prometheus.CounterVec
	connections prometheus.Counter
	connected   prometheus.Gauge
	breaker     prometheus.GaugeFunc
}

// The results of a Publish.
const (
	resultConfirmed  = "confirmed"
	resultUnroutable = "unroutable"
	resultBlocked    = "blocked"
	resultRefused    = "refused"
	resultOpen       = "open"
	resultFailed     = "failed"
)

func newMetrics(name string, state func() gobreaker.State) *metrics {
	labels := prometheus.Labels{"name": name}
	m := &metrics{
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
	for _, result := range []string{resultConfirmed, resultUnroutable, resultBlocked, resultRefused, resultOpen, resultFailed} {
		m.published.WithLabelValues(result)
	}
	return m
}

func (m *metrics) count(err error) {
	result := resultFailed
	switch {
	case err == nil:
		result = resultConfirmed
	case errors.Is(err, ErrUnroutable):
		result = resultUnroutable
	case errors.Is(err, ErrBlocked):
		result = resultBlocked
	case errors.Is(err, ErrRefused):
		result = resultRefused
	case errors.Is(err, ErrOpen):
		result = resultOpen
	}
	m.published.WithLabelValues(result).Inc()
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.published, m.connections, m.connected, m.breaker}
}
