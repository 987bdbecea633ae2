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

	cycles, passed int64
	failure        string // one of the errors
}

// newResult sums up what the processes of one measurement have done.
func newResult(c contender, w workload, outcomes []outcome, span time.Duration) result {
	var total outcome
	for _, o := range outcomes {
		total.add(o)
	}
	r := result{
		Contender:       c.name,
		Workload:        w.name,
		Callers:         w.callers,
		CyclesPerSecond: float64(total.Cycles) / span.Seconds(),
		P50:             micros(total.Latency.Quantile(0.5)),
		P99:             micros(total.Latency.Quantile(0.99)),
		Max:             micros(total.Latency.Quantile(1)),
		HandOversPerSec: float64(total.HandOvers) / span.Seconds(),
		Errors:          total.Errors,
		ExclusionBroken: total.Broken,
		cycles:          total.Cycles,
		passed:          total.Passed,
		failure:         total.Error,
	}
	r.MinShare, r.MaxShare = shares(outcomes, total.Cycles)
	return r
}

// failedResult stands for a measurement that could not be made.
func failedResult(c contender, w workload, err error) result {
	return result{Contender: c.name, Workload: w.name, Callers: w.callers, Errors: 1, failure: err.Error()}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

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
	of := func(figure func(result) float64) float64 {
		return measure.Thousandths(measure.MedianOf(rounds, figure))
	}
	r.CyclesPerSecond = of(func(r result) float64 { return r.CyclesPerSecond })
	r.P50 = of(func(r result) float64 { return r.P50 })
	r.P99 = of(func(r result) float64 { return r.P99 })
	r.Max = of(func(r result) float64 { return r.Max })
	r.HandOversPerSec = of(func(r result) float64 { return r.HandOversPerSec })
	r.CommandsPerCycle = of(func(r result) float64 { return r.CommandsPerCycle })
	for _, other := range rounds[1:] {
		r.MinShare = min(r.MinShare, other.MinShare)
		r.MaxShare = max(r.MaxShare, other.MaxShare)
		r.Errors += other.Errors
		r.ExclusionBroken += other.ExclusionBroken
		r.cycles += other.cycles
		if r.failure == "" {
			r.failure = other.failure
		}
	}
	r.MinShare, r.MaxShare = measure.Thousandths(r.MinShare), measure.Thousandths(r.MaxShare)
	return r
}
