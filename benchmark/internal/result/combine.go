package result

import (
	"math"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// Combine makes the figures of a method out of its rounds, of which there is at
// least one.
func Combine(method, operation string, rounds []Round) Method {
	of := func(figure func(Round) float64) float64 { return measure.Thousandths(measure.MedianOf(rounds, figure)) }
	count := func(figure func(Round) int) int {
		return int(math.Round(measure.MedianOf(rounds, func(r Round) float64 { return float64(figure(r)) })))
	}
	m := Method{
		Method: method, Operation: operation, Rounds: rounds,
		Intercepted: count(func(r Round) int { return r.FirstLayer + r.SecondLayer + r.Results["sold_out"] }),
		Times: Times{
			Mean: of(func(r Round) float64 { return r.Mean }), P50: of(func(r Round) float64 { return r.P50 }),
			P95: of(func(r Round) float64 { return r.P95 }), P99: of(func(r Round) float64 { return r.P99 }),
			Throughput: of(func(r Round) float64 { return r.Throughput }),
		},
		Counts: Counts{
			Succeeded:   count(func(r Round) int { return r.Succeeded }),
			FirstLayer:  count(func(r Round) int { return r.FirstLayer }),
			SecondLayer: count(func(r Round) int { return r.SecondLayer }),
			CPU:         make(map[string]float64),
		},
		SoldOut: count(func(r Round) int { return r.Results["sold_out"] }),
	}
	for group := range rounds[0].CPU {
		m.CPU[group] = of(func(r Round) float64 { return r.CPU[group] })
	}
	for i, r := range rounds {
		m.LockFailures += r.Results["intercepted"]
		m.Duplicates += r.Duplicates
		m.Oversold += r.Oversold
		m.Lost += r.Lost
		m.Errors += r.Results["error"]
		m.Published += r.Published
		m.Received += r.Received
		m.Killed = m.Killed || r.Killed
		if m.FirstError == "" {
			m.FirstError = r.FirstError
		}
		if i == 0 {
			m.Spread = Spread{[2]float64{r.Mean, r.Mean}, [2]float64{r.Throughput, r.Throughput}}
		}
		m.Spread.Mean = [2]float64{min(m.Spread.Mean[0], r.Mean), max(m.Spread.Mean[1], r.Mean)}
		m.Spread.Throughput = [2]float64{min(m.Spread.Throughput[0], r.Throughput), max(m.Spread.Throughput[1], r.Throughput)}
	}
	return m
}
