package redislock

import (
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/lock/lockengine"
)

// result is how a request ended.
type result int

const (
	resultDone result = iota
	resultHeld
	resultNotHeld
	resultMarked
	resultNotSent
	resultRefused
	resultNoAnswer
	resultFailed
	results
)

var resultNames = [results]string{"ok", "held", "not_held", "marked", "not_sent", "refused", "no_answer", "error"}

func resultOf(err error) result {
	if err == nil {
		return resultDone
	}
	if _, ok := errors.AsType[*lockengine.HeldError](err); ok {
		return resultHeld
	}
	switch {
	case errors.Is(err, lockengine.ErrNotHeld):
		return resultNotHeld
	case errors.Is(err, lockengine.ErrMarked):
		return resultMarked
	case errors.Is(err, lockengine.ErrRefused):
		return resultRefused
	case errors.Is(err, lockengine.ErrNotSent):
		return resultNotSent
	case errors.Is(err, lockengine.ErrNoAnswer):
		return resultNoAnswer
	}
	return resultFailed
}

// metrics are an engine's counters.
type metrics struct {
	requests map[*script]*[results]atomic.Int64

	requestsDesc, breakerDesc, watchedDesc, connsDesc, trackedDesc *prometheus.Desc
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
		trackedDesc:  desc("tracked", "Held locks whose loss the server reports."),
	}
	for _, s := range []*script{acquireScript, renewScript, releaseScript, inspectScript} {
		m.requests[s] = new([results]atomic.Int64)
	}
	return m
}

func (m *metrics) count(s *script, err error) { m.requests[s][resultOf(err)].Add(1) }
