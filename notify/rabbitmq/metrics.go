package rabbitmq

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/internal/breaker"
	"github.com/belaygo/belay/internal/metric"
)

// set is unexported, so that the types that embed it gain methods and no field.
type set = metric.Set

type metrics struct {
	set

	published   *prometheus.CounterVec
	connections prometheus.Counter
	connected   prometheus.Gauge
}

// results are the results of a Publish, by the error that it matches.
var results = []struct {
	is   error
	name string
}{
	{ErrUnroutable, "unroutable"},
	{errBlocked, "blocked"},
	{errRefused, "refused"},
	{errTooLarge, "too_large"},
	{errOpen, "open"},
	{nil, "confirmed"},
}

const resultFailed = "failed" // with any other error

func newMetrics(name string, b *breaker.Breaker) *metrics {
	f := metric.Factory{Labels: prometheus.Labels{"name": name}}
	m := &metrics{
		published:   f.CounterVec("belay_rabbitmq_published_total", "Events given to Publish, by result.", "result"),
		connections: f.Counter("belay_rabbitmq_connections_total", "Connections opened by the publisher."),
		connected:   f.Gauge("belay_rabbitmq_connected", "1 while the publisher is connected."),
	}
	m.set = append(f.Set, breaker.Gauge(b, "belay_rabbitmq_breaker_state", f.Labels))
	m.published.WithLabelValues(resultFailed)
	for _, result := range results {
		m.published.WithLabelValues(result.name)
	}
	return m
}

func (m *metrics) count(err error) {
	for _, result := range results {
		if errors.Is(err, result.is) {
			m.published.WithLabelValues(result.name).Inc()
			return
		}
	}
	m.published.WithLabelValues(resultFailed).Inc()
}
