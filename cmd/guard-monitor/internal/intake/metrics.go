package intake

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	received, stored, failures, deadLettered, connections, heartbeats prometheus.Counter

	connected, listening prometheus.Gauge

	deadLetters *prometheus.GaugeVec // without labels; empty while not known
}

func newMetrics(name string) *metrics {
	labels := prometheus.Labels{"name": name}
	counter := func(metric, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "belay_consumer_" + metric, Help: help, ConstLabels: labels})
	}
	gauge := func(metric, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "belay_consumer_" + metric, Help: help, ConstLabels: labels})
	}
	return &metrics{
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

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.received, m.stored, m.failures, m.deadLettered, m.connections, m.heartbeats, m.connected, m.listening, m.deadLetters}
}

// Describe implements prometheus.Collector.
func (c *Consumer) Describe(descs chan<- *prometheus.Desc) {
	for _, m := range c.metrics.all() {
		m.Describe(descs)
	}
}

// Collect implements prometheus.Collector.
func (c *Consumer) Collect(samples chan<- prometheus.Metric) {
	for _, m := range c.metrics.all() {
		m.Collect(samples)
	}
}
