package result

import "github.com/belaygo/belay/benchmark/internal/measure"

// Ratios compares methods within the run. A comparison whose methods were not
// run is left out. Each ratio is the median over the rounds of the ratio within
// the round: both were measured within the same minute.
func Ratios(methods []Method) []Target {
	by := make(map[string]Method, len(methods))
	for _, m := range methods {
		by[m.Method] = m
	}
	var all []Target
	add := func(name, ours, theirs string, figure func(Round) float64, limit float64, least bool) {
		a, okA := by[ours]
		b, okB := by[theirs]
		if !okA || !okB {
			return
		}
		value := ratio(a, b, figure)
		met := value <= limit
		if least {
			met = value >= limit
		}
		all = append(all, Target{Name: name, Value: value, Limit: limit, Least: least, Met: met})
	}
	mean := func(r Round) float64 { return r.Mean }
	rate := func(r Round) float64 { return r.Throughput }
	add("belay / unique-index, mean response", "belay", "unique-index", mean, 0.60, false)
	add("belay / redis-lock, mean response", "belay", "redis-lock", mean, 0.90, false)
	add("belay / unique-index, throughput", "belay", "unique-index", rate, 1, true)
	add("belay / redis-lock, throughput", "belay", "redis-lock", rate, 1, true)
	add("belay-stock / pessimistic, mean response", "belay-stock", "pessimistic", mean, 1, false)
	return all
}

// ratio is the median over the rounds of a figure of a by that of b. It is 0 if no
// round has both.
func ratio(a, b Method, figure func(Round) float64) float64 {
	of := make(map[int]float64)
	for _, r := range b.Rounds {
		of[r.Round] = figure(r)
	}
	var ratios []float64
	for _, r := range a.Rounds {
		if other := of[r.Round]; other > 0 {
			ratios = append(ratios, figure(r)/other)
		}
	}
	return measure.Thousandths(measure.Median(ratios))
}

// Between is the ratio of the mean response of two methods of a run, and false
// if one of them was not run.
func (r *Run) Between(ours, theirs string) (float64, bool) {
	var a, b *Method
	for i, m := range r.Methods {
		switch m.Method {
		case ours:
			a = &r.Methods[i]
		case theirs:
			b = &r.Methods[i]
		}
	}
	if a == nil || b == nil {
		return 0, false
	}
	return ratio(*a, *b, func(r Round) float64 { return r.Mean }), true
}
