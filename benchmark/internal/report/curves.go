package report

import (
	"fmt"
	"html/template"
	"slices"

	"github.com/belaygo/belay/benchmark/internal/chart"
	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/shop"
)

// loadKind is what the curves of one chart have in common. Inserts and sales are
// different work, so they do not share one.
type loadKind struct {
	sells         bool
	keys, repeats string
	steps         []result.Step
}

// loads sorts the steps by load, in the order in which they were run.
func loads(r *result.Run) (kinds []*loadKind) {
	for _, s := range r.Steps {
		sells := shop.Method(s.Method).Sells()
		at := slices.IndexFunc(kinds, func(k *loadKind) bool {
			return k.sells == sells && k.keys == s.Keys && k.repeats == s.Repeats
		})
		if at < 0 {
			at = len(kinds)
			kinds = append(kinds, &loadKind{sells: sells, keys: s.Keys, repeats: s.Repeats})
		}
		kinds[at].steps = append(kinds[at].steps, s)
	}
	return kinds
}

// String names the load.
func (k *loadKind) String() string {
	keys := map[string]string{"hot": "one hot key", "uniform": "uniform keys", "zipf": "Zipf keys"}[k.keys]
	switch {
	case k.sells:
		return "Sales, " + keys
	case k.keys != "uniform":
		return "Inserts, " + keys
	case k.repeats == "at-once":
		return "Inserts, " + keys + ", each wanted by two at once"
	case k.repeats == "sequence":
		return "Inserts, " + keys + ", each repeated after the answer"
	}
	return "Inserts, " + keys + ", none repeated"
}

// methods lists the methods, and users the numbers of users, each once.
func (k *loadKind) methods() (all []string) {
	for _, s := range k.steps {
		if !slices.Contains(all, s.Method) {
			all = append(all, s.Method)
		}
	}
	return all
}

func (k *loadKind) users() (all []int) {
	for _, s := range k.steps {
		if !slices.Contains(all, s.Concurrency) {
			all = append(all, s.Concurrency)
		}
	}
	slices.Sort(all)
	return all
}

// step returns the step of a method with some users, and false if there is none.
func (k *loadKind) step(method string, users int) (result.Step, bool) {
	at := slices.IndexFunc(k.steps, func(s result.Step) bool { return s.Method == method && s.Concurrency == users })
	if at < 0 {
		return result.Step{}, false
	}
	return k.steps[at], true
}

// curves shows each load: throughput and latency over the number of users, by
// method; and over time where a master was killed.
func curves(r *result.Run) []figure {
	var all []figure
	for _, k := range loads(r) {
		all = append(all,
			k.curve("throughput", "requests/s", false, func(s result.Step) float64 { return s.Throughput }),
			k.curve("p99 response", "p99, ms", true, func(s result.Step) float64 { return s.P99 }))
	}
	for _, s := range r.Steps {
		if s.Killed >= 0 {
			all = append(all, overTime(s))
		}
	}
	return all
}

func (k *loadKind) curve(what, unit string, log bool, of func(result.Step) float64) figure {
	plot := chart.Plot{Title: k.String() + ": " + what, X: "users at once", Y: unit, LogX: true, LogY: log, Mark: -1}
	for _, n := range k.users() {
		plot.TicksX = append(plot.TicksX, float64(n))
	}
	f := figure{Title: plot.Title}
	var all []chart.Series
	for _, method := range k.methods() {
		m := shop.Method(method)
		s := chart.Series{Name: method, Class: classOf(m), Large: m == shop.Belay || m == shop.BelayStock}
		for _, n := range k.users() {
			if step, ok := k.step(method, n); ok {
				failed := step.Results[string(shop.Failed)] > 0
				s.Points = append(s.Points, chart.Point{X: float64(n), Y: of(step), Failed: failed})
				if failed {
					f.Note = "A cross: requests failed, or took longer than they may."
				}
			}
		}
		all = append(all, s)
		f.Legend = append(f.Legend, legend{s.Class, method})
	}
	f.SVG = template.HTML(plot.Lines(all)) //nolint:gosec // escaped where it is drawn
	return f
}

// classOf is the colour of a method, the same in every chart.
func classOf(m shop.Method) int {
	switch m {
	case shop.Belay, shop.BelayStock:
		return 0
	case shop.UniqueIndex, shop.Pessimistic:
		return 1
	case shop.RedisLock:
		return 2
	case shop.BelayMarked:
		return 3
	case shop.Optimistic:
		return 4
	}
	return 5
}

func overTime(s result.Step) figure {
	p50, p99 := chart.Series{Name: "p50", Class: 0}, chart.Series{Name: "p99", Class: 1}
	for _, slice := range s.Series {
		p50.Points = append(p50.Points, chart.Point{X: slice.At, Y: slice.P50})
		p99.Points = append(p99.Points, chart.Point{X: slice.At, Y: slice.P99, Failed: slice.Errors > 0})
	}
	plot := chart.Plot{Title: "latency over time", X: "s", Y: "ms", LogY: true, Mark: s.Killed, MarkName: "master killed"}
	return figure{
		Title:  fmt.Sprintf("Latency over time: %s, %s keys, %d users", s.Method, s.Keys, s.Concurrency),
		Legend: []legend{{0, "p50"}, {1, "p99"}},
		SVG:    template.HTML(plot.Lines([]chart.Series{p50, p99})), //nolint:gosec // numbers
	}
}
