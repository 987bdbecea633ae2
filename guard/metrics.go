package guard

import (
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/notify"
)

type metrics struct {
	outcomes   *prometheus.CounterVec
	done       prometheus.Counter // of outcomes
	events     *prometheus.CounterVec
	uncovered  *prometheus.CounterVec
	lockWait   prometheus.Histogram
	txTime     prometheus.Histogram
	unjudged   prometheus.Counter
	unverified prometheus.Counter
	retries    prometheus.Counter
	overtaken  prometheus.Counter
	without    prometheus.Counter
	crewSize   prometheus.Histogram
	combined   *prometheus.CounterVec
	calls      *prometheus.CounterVec
	outages    *prometheus.Desc
	queued     *prometheus.Desc
	backlog    *backlog // with Config.Calls, else nil

	logged sync.Map // tables whose uncovered writes have been logged
}

// What became of a call with Combine in the end. One that shared a transaction and then ran
// alone is alone, or slow.
const (
	combinedShared = "shared" // it made its change in a transaction with others
	combinedAlone  = "alone"  // it had a transaction of its own
	combinedSlow   = "slow"   // likewise, as its change took too long for the others
	combinedNone   = "none"   // it ended before it had a transaction
)

// What became of a Run of a Call.
const (
	callSettled   = "settled"   // it has an answer, now or from before
	callPending   = "pending"   // its outcome is open
	callUndecided = "undecided" // nobody calls any more
	callOvertaken = "overtaken" // beside one of the others: another process had taken it over
	callFailed    = "failed"    // it ended before its call
)

func newMetrics(name string) *metrics {
	labels := prometheus.Labels{"name": name}
	counter := func(metric, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: "belay_guard_" + metric, Help: help, ConstLabels: labels}
	}
	seconds := func(metric, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "belay_guard_" + metric, Help: help, ConstLabels: labels,
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		})
	}
	m := &metrics{
		outcomes:   prometheus.NewCounterVec(counter("operations_total", "Ended calls of Do, by outcome."), []string{"outcome"}),
		events:     prometheus.NewCounterVec(counter("events_total", "Events handed to the publisher, by verdict."), []string{"verdict"}),
		uncovered:  prometheus.NewCounterVec(counter("uncovered_total", "Transactions under a lock with writes that only the lock guards, by table."), []string{"table"}),
		lockWait:   seconds("lock_seconds", "How long it took to get the lock, or its refusal, with the wait for an exhausted pool."),
		txTime:     seconds("transaction_seconds", "How long transactions took, from their begin to their end."),
		unjudged:   prometheus.NewCounter(counter("unjudged_total", "Conflicts on rows that the key does not protect.")),
		unverified: prometheus.NewCounter(counter("unverified_total", "Repeats at which the lock could not be asked.")),
		retries:    prometheus.NewCounter(counter("retries_total", "Attempts made again after a deadlock, or because another caller had changed a row first.")),
		overtaken:  prometheus.NewCounter(counter("overtaken_total", "Attempts refused because another caller had changed a row first, though nothing shows that a lock failed.")),
		without:    prometheus.NewCounter(counter("without_lock_total", "Operations that ran without the lock.")),
		crewSize: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "belay_guard_crew_size", Help: "Calls with Combine whose changes one transaction made.", ConstLabels: labels,
			Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128},
		}),
		combined: prometheus.NewCounterVec(counter("combined_total", "Ended calls with Combine, by what became of them."), []string{"result"}),
		calls:    prometheus.NewCounterVec(counter("calls_total", "Ended runs of a Call, by what became of them."), []string{"result"}),
		outages:  prometheus.NewDesc("belay_guard_degraded", "Places where operations run without the lock now.", nil, labels),
		queued:   prometheus.NewDesc("belay_guard_queued", "Operations that wait for the pool of connections before they take their locks.", nil, labels),
	}
	for _, r := range results {
		m.outcomes.WithLabelValues(string(r))
	}
	for _, result := range []string{combinedShared, combinedAlone, combinedSlow, combinedNone} {
		m.combined.WithLabelValues(result)
	}
	for _, result := range []string{callSettled, callPending, callUndecided, callOvertaken, callFailed} {
		m.calls.WithLabelValues(result)
	}
	m.done = m.outcomes.WithLabelValues(string(resultDone))
	for _, v := range []notify.Verdict{notify.VerdictOverlap, notify.VerdictLost, notify.VerdictUnknownCommit, notify.VerdictDegraded, notify.VerdictUnavailable, notify.VerdictCommitLost, notify.VerdictUndecided} {
		m.events.WithLabelValues(string(v))
	}
	return m
}

func (m *metrics) ended(err error) {
	if err == nil {
		m.done.Inc()
		return
	}
	m.outcomes.WithLabelValues(string(ResultOf(err))).Inc()
}

// countUncovered counts tables whose rows only the lock guards, and logs each of them
// once.
func (m *metrics) countUncovered(tables []string, logger *slog.Logger) {
	for _, table := range tables {
		m.uncovered.WithLabelValues(table).Inc()
		if _, before := m.logged.LoadOrStore(table, true); !before {
			logger.Warn("writes that only the lock guards", "table", table)
		}
	}
}

func (m *metrics) all() []prometheus.Collector {
	all := []prometheus.Collector{m.outcomes, m.events, m.uncovered, m.lockWait, m.txTime,
		m.unjudged, m.unverified, m.retries, m.overtaken, m.without, m.crewSize, m.combined, m.calls}
	if m.backlog != nil {
		all = append(all, m.backlog)
	}
	return all
}
