package result

import (
	"fmt"
	"slices"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// A Target is a figure to reach.
type Target struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`
	Least bool    `json:"least"` // the value must be at least the limit, not at most
	Met   bool    `json:"met"`
}

// NewTarget returns a Target for a value.
func NewTarget(name string, value, limit float64, least bool) Target {
	return Target{Name: name, Value: value, Limit: limit, Least: least, Met: value == limit || value > limit == least}
}

// Judged returns the limit with its sign, and whether it is reached.
func (t Target) Judged() (limit, verdict string) {
	sign, verdict := "≤", "missed"
	if t.Least {
		sign = "≥"
	}
	if t.Met {
		verdict = "reached"
	}
	return fmt.Sprintf("%s %.2f", sign, t.Limit), verdict
}

// Ratios compares methods within the run. A comparison whose methods were not
// run is left out. Each ratio is the median over the rounds of the ratio within
// the round: both were measured within the same minute.
func Ratios(methods []Method) (all []Target) {
	add := func(ours, theirs, figure string, of func(Round) float64, limit float64, least bool) {
		if value, ok := between(methods, ours, theirs, of); ok {
			all = append(all, NewTarget(ours+" / "+theirs+", "+figure, value, limit, least))
		}
	}
	mean := func(r Round) float64 { return r.Mean }
	rate := func(r Round) float64 { return r.Throughput }
	add("belay", "unique-index", "mean response", mean, 0.60, false)
	add("belay", "redis-lock", "mean response", mean, 0.90, false)
	add("belay", "unique-index", "throughput", rate, 1, true)
	add("belay", "redis-lock", "throughput", rate, 1, true)
	add("belay-stock", "pessimistic", "mean response", mean, 1, false)
	return all
}

// Between is the ratio of the mean response of two methods of a run, and false
// if one of them was not run.
func (r *Run) Between(ours, theirs string) (float64, bool) {
	return between(r.Methods, ours, theirs, func(r Round) float64 { return r.Mean })
}

// between is the median over the rounds of a figure of ours by that of theirs. It is
// 0 if no round has both, and false if one of them was not run.
func between(methods []Method, ours, theirs string, figure func(Round) float64) (float64, bool) {
	a := slices.IndexFunc(methods, func(m Method) bool { return m.Method == ours })
	b := slices.IndexFunc(methods, func(m Method) bool { return m.Method == theirs })
	if a < 0 || b < 0 {
		return 0, false
	}
	of := make(map[int]float64)
	for _, r := range methods[b].Rounds {
		of[r.Round] = figure(r)
	}
	var ratios []float64
	for _, r := range methods[a].Rounds {
		if other := of[r.Round]; other > 0 {
			ratios = append(ratios, figure(r)/other)
		}
	}
	return measure.Thousandths(measure.Median(ratios)), true
}
