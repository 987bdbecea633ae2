package report

import (
	"fmt"
	"html/template"
	"slices"

	"github.com/belaygo/belay/benchmark/internal/chart"
	"github.com/belaygo/belay/benchmark/internal/result"
)

// curves shows each combination of keys and repeats: throughput and latency over
// concurrency, by method; and over time where a master was killed.
func curves(r *result.Run) []figure {
	var all []figure
	for _, load := range loads(r) {
		all = append(all,
			curve(r, load, "requests/s", false, func(s result.Step) float64 { return s.Throughput }),
			curve(r, load, "p99, ms", true, func(s result.Step) float64 { return s.P99 }))
	}
	for _, s := range r.Steps {
		if s.Killed >= 0 {
			all = append(all, overTime(s))
		}
	}
	return all
}

type loadKind struct{ keys, repeats string }

func loads(r *result.Run) (kinds []loadKind) {
	for _, s := range r.Steps {
		if k := (loadKind{s.Keys, s.Repeats}); !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

func curve(r *result.Run, k loadKind, unit string, log bool, of func(result.Step) float64) figure {
	var series []chart.Series
	var ticks []float64
	for _, s := range r.Steps {
		if s.Keys != k.keys || s.Repeats != k.repeats {
			continue
		}
		at := slices.IndexFunc(series, func(other chart.Series) bool { return other.Name == s.Method })
		if at < 0 {
			at = len(series)
			series = append(series, chart.Series{Name: s.Method, Class: at})
		}
		series[at].Points = append(series[at].Points, [2]float64{float64(s.Concurrency), of(s)})
		if c := float64(s.Concurrency); !slices.Contains(ticks, c) {
			ticks = append(ticks, c)
		}
	}
	plot := chart.Plot{Title: unit, X: "concurrent users", Y: unit, LogX: true, LogY: log, TicksX: ticks, Mark: -1}
	f := figure{Title: fmt.Sprintf("%s over concurrency; keys %s, repeats %s", unit, k.keys, k.repeats)}
	for _, s := range series {
		f.Legend = append(f.Legend, legend{s.Class, s.Name})
	}
	f.SVG = template.HTML(plot.Lines(series)) //nolint:gosec // escaped where it is drawn
	return f
}

func overTime(s result.Step) figure {
	p50, p99 := chart.Series{Name: "p50", Class: 0}, chart.Series{Name: "p99", Class: 1}
	for _, slice := range s.Series {
		p50.Points = append(p50.Points, [2]float64{slice.At, slice.P50})
		p99.Points = append(p99.Points, [2]float64{slice.At, slice.P99})
	}
	plot := chart.Plot{Title: "latency over time", X: "s", Y: "ms", LogY: true, Mark: s.Killed, MarkName: "master killed"}
	return figure{
		Title:  fmt.Sprintf("Latency over time: %s, %d users", s.Method, s.Concurrency),
		Legend: []legend{{0, "p50"}, {1, "p99"}},
		SVG:    template.HTML(plot.Lines([]chart.Series{p50, p99})), //nolint:gosec // numbers
	}
}
