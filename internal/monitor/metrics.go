package monitor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/notify"
)

type metrics struct {
	events      *prometheus.CounterVec
	duplicates  prometheus.Counter
	storeErrors prometheus.Counter
	last        prometheus.Gauge
}

func newMetrics() metrics {
	m := metrics{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "belay_monitor_events_total",
			Help: "Events stored and alerted since the start, by verdict. One event may stand for several failures.",
		}, []string{"verdict"}),
		duplicates: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "belay_monitor_duplicates_total",
			Help: "Events received again and ignored.",
		}),
		storeErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "belay_monitor_store_errors_total",
			Help: "Events that could not be stored and were left to the sender.",
		}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "belay_monitor_last_event_timestamp_seconds",
			Help: "When the newest event was stored, before the start too; 0 if there is none.",
		}),
	}
	for _, v := range []notify.Verdict{notify.Overlap, notify.Lost, notify.UnknownCommit, notify.Degraded} {
		m.events.WithLabelValues(string(v))
	}
	return m
}

func (m metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.events, m.duplicates, m.storeErrors, m.last}
}

func (m metrics) stored(ev notify.Event) {
	m.events.WithLabelValues(string(ev.Verdict)).Inc()
	m.received(time.Now())
}

func (m metrics) received(at time.Time) {
	m.last.Set(float64(at.UnixMicro()) / 1e6)
}
