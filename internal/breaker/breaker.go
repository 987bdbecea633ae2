// Package breaker is the circuit breaker of the publishers.
//
//	b := breaker.New(isAnswer, isExcluded)
//	_, err := b.Execute(func() (struct{}, error) { return struct{}{}, send(ctx) })
//	if breaker.IsOpen(err) {
//		return errOpen // nothing was sent
//	}
//
// After so many failures in a row a call fails at once, so that whoever has no time to
// lose (a caller whose database is away) does not spend it on a destination that does
// not answer. Events stay in the outbox meanwhile.
package breaker

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sony/gobreaker/v2"
)

const (
	failures = 5
	timeout  = time.Second // then one call tries again
)

// A Breaker is a circuit breaker.
type Breaker = gobreaker.CircuitBreaker[struct{}]

// New returns a closed Breaker. An error that is an answer is a success: a destination
// that says no is well. One that is excluded counts as neither, and so does the end of
// the caller's context.
func New(isAnswer, isExcluded func(error) bool) *Breaker {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:      timeout,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failures },
		IsSuccessful: func(err error) bool { return err == nil || isAnswer(err) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) || isExcluded(err) },
	})
}

// IsOpen reports whether err is that of a Breaker that made no call.
func IsOpen(err error) bool {
	return errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests)
}

// Gauge returns the state of b as a metric.
func Gauge(b *Breaker, name string, labels prometheus.Labels) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: name, Help: "Of the circuit breaker: 0 closed, 1 half open, 2 open.", ConstLabels: labels,
	}, func() float64 { return float64(b.State()) })
}
