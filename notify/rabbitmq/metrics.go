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

type consumerMetrics struct {
	received, stored, failures, deadLettered, connections, heartbeats prometheus.Counter

	connected, listening prometheus.Gauge

	deadLetters *prometheus.GaugeVec // without labels; empty while not known
}

func newConsumerMetrics(name string) *consumerMetrics {
	labels := prometheus.Labels{"name": name}
	counter := func(metric, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "belay_consumer_" + metric, Help: help, ConstLabels: labels})
	}
	gauge := func(metric, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "belay_consumer_" + metric, Help: help, ConstLabels: labels})
	}
	return &consumerMetrics{
		received:     counter("received_total", "Messages received, redelivered ones among them."),
		stored:       counter("stored_total", "Events that the handler took and the consumer acknowledged."),
		failures:     counter("handler_failures_total", "Calls of the handler that failed."),
		deadLettered: counter("dead_lettered_total", "Messages sent to the dead letters: no events, or refused by the handler."),
		connections:  counter("connections_total", "Connections opened by the consumer."),
		heartbeats:   counter("heartbeats_total", "Heartbeats received."),
		connected:    gauge("connected", "1 while the consumer reads the queue."),
		listening:    gauge("listening", "1 while the consumer reads heartbeats."),
		deadLetters: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "belay_consumer_dead_letters", ConstLabels: labels,
			Help: "Messages in the queue of the dead letters, whoever sent them there. Absent while the consumer does not read its queue.",
		}, nil),
	}
}

func (m *consumerMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.received, m.stored, m.failures, m.deadLettered, m.connections, m.heartbeats, m.connected, m.listening, m.deadLetters}
}

// Describe implements prometheus.Collector.
func (c *Consumer) Describe(descs chan<- *prometheus.Desc) {
	for _, m := range c.metrics.all() {
		m.Describe(descs)
	}
}

// Collect implements prometheus.Collector.
func (c *Consumer) Collect(metrics chan<- prometheus.Metric) {
	for _, m := range c.metrics.all() {
		m.Collect(metrics)
	}
}
