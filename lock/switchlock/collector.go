package switchlock

import (
	"errors"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/lock/lockengine"
)

type metrics struct {
	stale, denied atomic.Int64

	epochDesc, movingDesc, ageDesc, refusedDesc *prometheus.Desc
}

func newMetrics() *metrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("belay_switch_"+name, help, labels, nil)
	}
	return &metrics{
		epochDesc:   desc("epoch", "Epoch of the record that says where locks are kept, by the engine that keeps them.", "engine"),
		movingDesc:  desc("moving", "1 while this process needs both engines of a switch."),
		ageDesc:     desc("record_age_seconds", "Time since the last successful read of the record began; above Lease no lock is granted."),
		refusedDesc: desc("refused_total", "Acquires and renewals that were sent to no engine: the last read of the record was too old (stale), or the ttl is too long or the engine is missing (denied).", "reason"),
	}
}

// refused counts a request that was not sent.
func (m *metrics) refused(err error) {
	if errors.Is(err, lockengine.ErrDenied) {
		m.denied.Add(1)
	} else {
		m.stale.Add(1)
	}
}

// Describe implements prometheus.Collector.
func (e *engine) Describe(ch chan<- *prometheus.Desc) {
	m := e.metrics
	for _, d := range []*prometheus.Desc{m.epochDesc, m.movingDesc, m.ageDesc, m.refusedDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (e *engine) Collect(ch chan<- prometheus.Metric) {
	m, s := e.metrics, e.State()
	moving := 0.0
	if s.Left > 0 {
		moving = 1
	}
	ch <- prometheus.MustNewConstMetric(m.epochDesc, prometheus.GaugeValue, float64(s.Epoch), strings.ToValidUTF8(s.To, "?"))
	ch <- prometheus.MustNewConstMetric(m.movingDesc, prometheus.GaugeValue, moving)
	ch <- prometheus.MustNewConstMetric(m.ageDesc, prometheus.GaugeValue, s.Age.Seconds())
	ch <- prometheus.MustNewConstMetric(m.refusedDesc, prometheus.CounterValue, float64(m.stale.Load()), "stale")
	ch <- prometheus.MustNewConstMetric(m.refusedDesc, prometheus.CounterValue, float64(m.denied.Load()), "denied")
}
