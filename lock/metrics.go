package lock

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/lock/lockengine"
)

// metrics are a Locker's counters.
type metrics struct {
	acquires       *prometheus.CounterVec
	seconds        prometheus.Histogram
	handOvers      atomic.Int64
	renewals       atomic.Int64
	renewalsFailed atomic.Int64
	lost           lostCounts

	granted, held, marked, failed prometheus.Counter // of acquires

	handOversDesc, renewalsDesc, lostDesc, heldDesc, orphansDesc *prometheus.Desc
}

// lostReason is the way in which a loss was detected.
type lostReason int

const (
	lostNotOurs  lostReason = iota // by the engine's answer to a renewal
	lostPushed                     // a LossWatcher had this renewed before it was due
	lostReleased                   // by the engine's answer to the release
	lostDeadline                   // it was not renewed in time
	lostMaxHold
	lostClosed // the Locker was closed
	lostReasons
)

var lostNames = [lostReasons]string{"renewal", "push", "release", "deadline", "max_hold", "closed"}

type lostCounts [lostReasons]atomic.Int64

func (c *lostCounts) add(why lostReason) { c[why].Add(1) }

func newMetrics(name string) *metrics {
	constant := prometheus.Labels{"name": name}
	desc := func(metric, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("belay_lock_"+metric, help, labels, constant)
	}
	m := &metrics{
		acquires: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "belay_lock_acquires_total", ConstLabels: constant,
			Help: "Ended attempts to get a lock, by result: granted, held (by another), marked (as done), failed.",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "belay_lock_acquire_seconds", ConstLabels: constant,
			Help:    "How long it took to get a lock, waiting included.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		handOversDesc: desc("handovers_total", "Locks handed over in memory instead of released."),
		renewalsDesc:  desc("renewals_total", "Renewals of single locks, by result: ok, failed.", "result"),
		lostDesc:      desc("lost_total", "Locks that went away under their holder, by how it was noticed.", "reason"),
		heldDesc:      desc("held", "Locks held now."),
		orphansDesc:   desc("orphans", "Locks without a user that may still exist in the engine."),
	}
	m.granted = m.acquires.WithLabelValues("granted")
	m.held = m.acquires.WithLabelValues("held")
	m.marked = m.acquires.WithLabelValues("marked")
	m.failed = m.acquires.WithLabelValues("failed")
	return m
}

func (m *metrics) acquired(err error, took time.Duration) {
	switch {
	case err == nil:
		m.granted.Inc()
		m.seconds.Observe(took.Seconds())
	case errors.Is(err, ErrHeld):
		m.held.Inc()
	case errors.Is(err, lockengine.ErrMarked):
		m.marked.Inc()
	default:
		m.failed.Inc()
	}
}
