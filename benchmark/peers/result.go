package main

import (
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// A result is what one contender reached in one workload.
type result struct {
	Contender        string  `json:"contender"`
	Workload         string  `json:"workload"`
	Callers          int     `json:"c"`
	CyclesPerSecond  float64 `json:"cycles_per_s"`
	P50              float64 `json:"p50_us"`
	P99              float64 `json:"p99_us"`
	Max              float64 `json:"max_us"`
	HandOversPerSec  float64 `json:"handovers_per_s"`
	CommandsPerCycle float64 `json:"commands_per_cycle"`
	MinShare         float64 `json:"min_share"`
	MaxShare         float64 `json:"max_share"`
	Errors           int64   `json:"errors"`
	ExclusionBroken  int64   `json:"exclusion_broken"`

	ours           bool // not of a peer
	cycles, passed int64
	failure        string // one of the errors
}

// newResult sums up what the processes of one measurement have done.
func newResult(c contender, w workload, outcomes []outcome, span time.Duration) result {
	var total outcome
	for _, o := range outcomes {
		total.add(o)
	}
	micros := func(q float64) float64 { return float64(total.Latency.Quantile(q)) / float64(time.Microsecond) }
	r := result{
		Contender: c.name, Workload: w.name, Callers: w.callers,
		CyclesPerSecond: float64(total.Cycles) / span.Seconds(), HandOversPerSec: float64(total.HandOvers) / span.Seconds(),
		P50: micros(0.5), P99: micros(0.99), Max: micros(1),
		Errors: total.Errors, ExclusionBroken: total.Broken,
		ours: c.ours, cycles: total.Cycles, passed: total.Passed, failure: total.Error,
	}
	r.MinShare, r.MaxShare = shares(outcomes, total.Cycles)
	return r
}

func perCycle(n, cycles int64) float64 {
	if cycles == 0 {
		return 0
	}
	return float64(n) / float64(cycles)
}

// shares returns the least and the greatest part that one process had in all
// cycles.
func shares(outcomes []outcome, cycles int64) (least, greatest float64) {
	least = 1
	for _, o := range outcomes {
		share := perCycle(o.Cycles, cycles)
		least, greatest = min(least, share), max(greatest, share)
	}
	return least, greatest
}

// combine makes one result of the rounds: the median of each figure, the worst
// shares, and all errors.
func combine(rounds []result) result {
	r := rounds[0]
	for _, figure := range []func(*result) *float64{
		func(r *result) *float64 { return &r.CyclesPerSecond },
		func(r *result) *float64 { return &r.P50 },
		func(r *result) *float64 { return &r.P99 },
		func(r *result) *float64 { return &r.Max },
		func(r *result) *float64 { return &r.HandOversPerSec },
		func(r *result) *float64 { return &r.CommandsPerCycle },
	} {
		*figure(&r) = measure.Thousandths(measure.MedianOf(rounds, func(r result) float64 { return *figure(&r) }))
	}
	for _, other := range rounds[1:] {
		r.MinShare = min(r.MinShare, other.MinShare)
		r.MaxShare = max(r.MaxShare, other.MaxShare)
		r.Errors += other.Errors
		r.ExclusionBroken += other.ExclusionBroken
		if r.failure == "" {
			r.failure = other.failure
		}
	}
	r.MinShare, r.MaxShare = measure.Thousandths(r.MinShare), measure.Thousandths(r.MaxShare)
	return r
}
