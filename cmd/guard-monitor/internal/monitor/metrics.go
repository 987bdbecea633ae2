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
	heartbeats  prometheus.Counter
	lag         prometheus.Histogram
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
		heartbeats: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "belay_monitor_heartbeats_total",
			Help: "Heartbeats received.",
		}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "belay_monitor_event_lag_seconds",
			Help:    "From the failure, by the reporting host's clock, to the stored event.",
			Buckets: []float64{.1, .5, 1, 5, 15, 60, 300, 3600, 86400},
		}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "belay_monitor_last_event_timestamp_seconds",
			Help: "When the newest event was stored, before the start too; 0 if there is none.",
		}),
	}
	for _, v := range []notify.Verdict{notify.VerdictOverlap, notify.VerdictLost, notify.VerdictUnknownCommit, notify.VerdictDegraded, notify.VerdictUnavailable, notify.VerdictCommitLost, notify.VerdictDeadLetter, notify.VerdictUndecided} {
		m.events.WithLabelValues(string(v))
	}
	return m
}

func (m metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.events, m.duplicates, m.storeErrors, m.heartbeats, m.lag, m.last}
}

func (m metrics) stored(ev notify.Event) {
	m.events.WithLabelValues(string(ev.Verdict)).Inc()
	now := time.Now()
	m.lag.Observe(max(now.Sub(ev.CaughtAt).Seconds(), 0))
	m.received(now)
}

func (m metrics) received(at time.Time) {
	m.last.Set(float64(at.UnixMicro()) / 1e6)
}
