package table1

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/benchmark/internal/load"
	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

// round measures one method once, and counts what it has done.
func (e *experiment) round(ctx context.Context, m shop.Method, n int) (result.Round, error) {
	var none result.Round
	if err := e.lateEvents(ctx); err != nil {
		return none, err
	}
	if err := e.settle(ctx, m); err != nil {
		return none, err
	}
	master, err := e.victim(ctx, m, n)
	if err != nil {
		return none, err
	}
	p, err := e.newPlan(ctx, m, e.cfg.Users, master)
	if err != nil {
		return none, err
	}
	before, err := e.prepare(ctx, m, p)
	if err != nil {
		return none, err
	}
	r, samples, err := e.measure(ctx, m, n, p)
	if err != nil {
		return none, err
	}
	if m.Sells() {
		err = e.auditSale(ctx, m, p, before, &r)
	} else {
		err = e.auditOrders(ctx, m, p, &r)
	}
	if err != nil {
		return none, err
	}
	if p.accident != nil {
		if err := e.afterAccident(ctx, m, p, samples, &r); err != nil {
			return none, err
		}
	}
	if m.Guarded() {
		err = e.events(ctx, m, &r)
	}
	return r, errors.Join(err, e.Stage.Running())
}

// afterAccident keeps the requests of the round for the report, and brings the
// master back.
func (e *experiment) afterAccident(ctx context.Context, m shop.Method, p *plan, samples []load.Sample, r *result.Round) error {
	r.Killed = true
	e.Result.Timeline = timeline(m, r.Round, samples, p.accident.at)
	if r.Results[string(shop.Intercepted)] == 0 {
		e.problem(m, r.Round, "no lock failure was caught")
	}
	return e.Stage.Cluster.Heal(ctx)
}

// victim chooses the master that will die, each round another one.
func (e *experiment) victim(ctx context.Context, m shop.Method, n int) (*stage.Master, error) {
	if m != shop.Belay {
		return nil, nil
	}
	masters, err := e.Stage.Cluster.Masters(ctx)
	if err != nil {
		return nil, err
	}
	return &masters[n%len(masters)], nil
}

// measure sends the requests, lets the accident happen meanwhile, and reads the
// clocks of the processors.
func (e *experiment) measure(ctx context.Context, m shop.Method, n int, p *plan) (r result.Round, samples []load.Sample, err error) {
	meter := e.Stage.Meter(ctx)
	var used measure.Reading
	e.ready = func() { used = meter.Read() }
	happened := make(chan error, 1)
	if p.accident != nil {
		go func() { happened <- p.accident.happen(ctx, e.load.Answered) }()
	} else {
		happened <- nil
	}
	samples, err = e.load.Run(ctx, p.requests)
	if accident := <-happened; accident != nil && err == nil {
		e.problem(m, n, "%v", accident)
	}
	if err == nil && len(samples) != len(p.requests) {
		err = fmt.Errorf("%d requests were sent instead of %d", len(samples), len(p.requests))
	}
	if err != nil {
		return r, nil, err
	}
	r = summarize(n, samples)
	r.CPU = meter.Since(used)
	return r, samples, nil
}

// summarize makes the figures of a round.
func summarize(n int, samples []load.Sample) result.Round {
	r := result.Round{Round: n, Results: make(map[string]int)}
	var h measure.Histogram
	first, last := span(samples)
	for _, s := range samples {
		h.Add(s.Latency)
		r.Results[string(s.Result)]++
		if s.Result.BySecondLayer() {
			r.SecondLayer++
		}
		if s.Result == shop.Failed && r.FirstError == "" {
			r.FirstError = s.Error
		}
	}
	r.Succeeded = r.Results[string(shop.Done)]
	r.FirstLayer = r.Results[string(shop.Busy)]
	r.Times, r.Max = result.NewTimes(&h, last.Sub(first)), measure.Millis(h.Quantile(1))
	return r
}

// span is the time from the first request to the last answer.
func span(samples []load.Sample) (first, last time.Time) {
	for i, s := range samples {
		if i == 0 || s.At.Before(first) {
			first = s.At
		}
		if end := s.At.Add(s.Latency); i == 0 || end.After(last) {
			last = end
		}
	}
	return first, last
}

func timeline(m shop.Method, n int, samples []load.Sample, killed time.Time) *result.Timeline {
	first, _ := span(samples)
	t := &result.Timeline{Method: string(m), Round: n, Killed: -1}
	if !killed.IsZero() {
		t.Killed = measure.Millis(killed.Sub(first))
	}
	for _, s := range samples {
		t.Points = append(t.Points, result.Point{
			Start: measure.Millis(s.At.Sub(first)), Latency: measure.Millis(s.Latency), Result: string(s.Result),
		})
	}
	return t
}
