package intake

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/internal/metric"
)

type metrics struct {
	metric.Set

	received, stored, failures, deadLettered, unbound, connections, heartbeats prometheus.Counter

	connected, listening prometheus.Gauge

	deadLetters *prometheus.GaugeVec // without labels; empty while not known
}

func newMetrics() *metrics {
	f := metric.Factory{Labels: prometheus.Labels{"name": name}}
	m := &metrics{
		received:     f.Counter("belay_consumer_received_total", "Messages received, redelivered ones among them."),
		stored:       f.Counter("belay_consumer_stored_total", "Events that the handler took and the consumer acknowledged, also those that were stored before."),
		failures:     f.Counter("belay_consumer_handler_failures_total", "Calls of the handler that failed."),
		deadLettered: f.Counter("belay_consumer_dead_lettered_total", "Messages sent to the dead letters: no events, or refused by the handler."),
		unbound:      f.Counter("belay_consumer_unbound_total", "Events and heartbeats refused: their sender may not speak for the service."),
		connections:  f.Counter("belay_consumer_connections_total", "Connections opened by the consumer."),
		heartbeats:   f.Counter("belay_consumer_heartbeats_total", "Heartbeats received."),
		connected:    f.Gauge("belay_consumer_connected", "1 while the consumer reads the queue."),
		listening:    f.Gauge("belay_consumer_listening", "1 while the consumer reads heartbeats."),
		deadLetters: f.GaugeVec("belay_consumer_dead_letters",
			"Messages in the queue of the dead letters, whoever sent them there. Absent while the consumer does not read its queue."),
	}
	m.Set = f.Set
	return m
}

type endpointMetrics struct {
	metric.Set

	requests, limited *prometheus.CounterVec
}

func newEndpointMetrics() *endpointMetrics {
	f := metric.Factory{}
	m := &endpointMetrics{
		requests: f.CounterVec("belay_ingest_requests_total", "Requests to take an event or a heartbeat over HTTP, and checks whether one would be taken, by result.", "result"),
		limited:  f.CounterVec("belay_ingest_limited_total", "Requests that were rejected because their sender was over its limits, by name of the entry of ingest.", "sender"),
	}
	for _, result := range []string{"stored", "repeated", "heartbeat", "checked", "rejected", "unauthorized", "limited", "busy", "failed", "broken"} {
		m.requests.WithLabelValues(result)
	}
	m.Set = f.Set
	return m
}

func (m *endpointMetrics) count(result string) { m.requests.WithLabelValues(result).Inc() }
