package redislock

import (
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/lock"
)

// result is how a request ended.
type result int

const (
	done result = iota
	held
	notHeld
	marked
	notSent
	declined
	noAnswer
	failed
	results
)

var resultNames = [results]string{"ok", "held", "not_held", "marked", "not_sent", "refused", "no_answer", "error"}

func resultOf(err error) result {
	if err == nil {
		return done
	}
	if _, ok := errors.AsType[*lock.HeldError](err); ok {
		return held
	}
	switch {
	case errors.Is(err, lock.ErrNotHeld):
		return notHeld
	case errors.Is(err, lock.ErrMarked):
		return marked
	case errors.Is(err, lock.ErrRefused):
		return declined
	case errors.Is(err, lock.ErrNotSent):
		return notSent
	case errors.Is(err, lock.ErrNoAnswer):
		return noAnswer
	}
	return failed
}

// metrics are what an engine counts.
type metrics struct {
	requests map[*script]*[results]atomic.Int64

	requestsDesc, breakerDesc, watchedDesc, connsDesc *prometheus.Desc
}

func newMetrics(name string) *metrics {
	desc := func(metric, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("belay_redis_"+metric, help, labels, prometheus.Labels{"name": name})
	}
	m := &metrics{
		requests:     make(map[*script]*[results]atomic.Int64),
		requestsDesc: desc("requests_total", "Requests about single locks, by command and result: ok, held (by another), not_held, marked, not_sent, refused, no_answer, error.", "command", "result"),
		breakerDesc:  desc("breaker_open", "1 while requests to a node are refused because it does not answer.", "node"),
		watchedDesc:  desc("watched", "Locks whose release is listened for."),
		connsDesc:    desc("subscription_connections", "Connections that listen for releases."),
	}
	for _, s := range []*script{acquire, renew, release, inspect} {
		m.requests[s] = new([results]atomic.Int64)
	}
	return m
}

func (m *metrics) count(s *script, err error) { m.requests[s][resultOf(err)].Add(1) }

// Describe implements prometheus.Collector.
func (e *Engine) Describe(ch chan<- *prometheus.Desc) {
	m := e.metrics
	for _, d := range []*prometheus.Desc{m.requestsDesc, m.breakerDesc, m.watchedDesc, m.connsDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (e *Engine) Collect(ch chan<- prometheus.Metric) {
	m := e.metrics
	for s, counts := range m.requests {
		for r := range results {
			ch <- prometheus.MustNewConstMetric(m.requestsDesc, prometheus.CounterValue,
				float64(counts[r].Load()), s.name, resultNames[r])
		}
	}
	gauge := func(d *prometheus.Desc, n float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, labels...)
	}
	if r, ok := e.sender.(*router); ok {
		for _, n := range r.all() {
			gauge(m.breakerDesc, n.breaker.open(), n.addr)
		}
	}
	topics, links := e.waker.counts()
	gauge(m.watchedDesc, float64(topics))
	gauge(m.connsDesc, float64(links))
}
