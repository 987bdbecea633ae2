package report

import (
	"fmt"
	"html/template"
	"slices"

	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/shop"
)

// A figure is a chart with its words.
type figure struct {
	Title  string
	Legend []legend
	SVG    template.HTML
	Note   string
}

type legend struct {
	Class int
	Name  string
}

func figures(r *result.Run) []figure {
	if r.Kind == result.Sustained {
		return curves(r)
	}
	here, theirs := "measured here", legend{1, "the paper"}
	ranged := []legend{{0, here + "; whiskers: least and greatest round"}, theirs}
	all := []figure{
		{"Mean response by method, ms", ranged, barsOf(r, "ms", func(m result.Method) group {
			return group{m.Method, [2]float64{m.Mean, paper(m.Method).meanMS}, m.Spread.Mean}
		}), "Absolute times of another machine mean nothing; compare methods within one colour. A notched bar is longer than the chart."},
		{"Throughput by method, requests/s", ranged, barsOf(r, "requests/s", func(m result.Method) group {
			return group{m.Method, [2]float64{m.Throughput, paper(m.Method).perSecond}, m.Spread.Throughput}
		}), "All requests of a round over the time from the first request to the last answer."},
		{"Mean response as a share of the simplest method's", []legend{{0, here}, theirs}, relative(r),
			"This is what two machines can be compared by. Less is better."},
	}
	if r.Timeline != nil {
		all = append(all, timeline(r.Timeline))
	}
	return all
}

func barsOf(r *result.Run, unit string, of func(result.Method) group) template.HTML {
	var groups []group
	for _, m := range r.Methods {
		groups = append(groups, of(m))
	}
	return bars(unit+" by method", unit, groups)
}

// relative compares methods within each of the two experiments, as the paper's
// figures can be compared, too.
func relative(r *result.Run) template.HTML {
	var groups []group
	for _, m := range r.Methods {
		base := string(shop.UniqueIndex)
		if shop.Method(m.Method).Sells() {
			base = string(shop.Pessimistic)
		}
		ours, ok := r.Between(m.Method, base)
		if !ok || m.Method == base {
			continue
		}
		theirs := paper(m.Method).meanMS / paper(base).meanMS // 0 where the paper has none
		groups = append(groups, group{name: m.Method, values: [2]float64{ours, theirs}})
	}
	return bars("mean response, relative", "times that of unique-index (inserts) or pessimistic (sales)", groups)
}

// timeline shows every request of a round.
func timeline(t *result.Timeline) figure {
	f := figure{
		Title: fmt.Sprintf("Latency over time: %s, round %d, one dot per request", t.Method, t.Round),
		Note: "A dot stands where its answer came. The request whose lock failure is caught stands still with its lock, " +
			"by intention, until another instance has written its order.",
	}
	var all []series
	for i, kind := range []struct{ result, name string }{
		{"done", "done"}, {"busy", "turned away by the first layer"}, {"duplicate", "refused by the second layer"},
		{"intercepted", "lock failure caught"}, {"error", "error"},
	} {
		s := series{name: kind.name, class: i, large: kind.result == "intercepted"}
		for _, p := range t.Points {
			if p.Result == kind.result {
				s.points = append(s.points, point{x: p.Start + p.Latency, y: p.Latency})
			}
		}
		if len(s.points) > 0 {
			all = append(all, s)
		}
	}
	return f.draw(plot{title: "latency over time", x: "time of the answer, ms", y: "latency, ms", dots: true, logY: true, killed: t.Killed}, all)
}

func (f figure) draw(p plot, all []series) figure {
	f.SVG = p.draw(all)
	for _, s := range all {
		f.Legend = append(f.Legend, legend{s.class, s.name})
	}
	return f
}

// curves shows each load: throughput and latency over the number of users, by
// method; and over time where a master was killed.
func curves(r *result.Run) (all []figure) {
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

func (k *loadKind) curve(what, unit string, logY bool, of func(result.Step) float64) figure {
	p := plot{title: k.String() + ": " + what, x: "users at once", y: unit, logY: logY, killed: -1}
	for _, n := range k.users() {
		p.ticks = append(p.ticks, float64(n))
	}
	f := figure{Title: p.title}
	var all []series
	for _, method := range k.methods() {
		m := shop.Method(method)
		s := series{name: method, class: classOf(m), large: m == shop.Belay || m == shop.BelayStock}
		for _, n := range k.users() {
			if step, ok := k.step(method, n); ok {
				failed := step.Results[string(shop.Failed)] > 0
				s.points = append(s.points, point{float64(n), of(step), failed})
				if failed {
					f.Note = "A cross: requests failed, or took longer than they may."
				}
			}
		}
		all = append(all, s)
	}
	return f.draw(p, all)
}

// classOf is the colour of a method, the same in every chart.
func classOf(m shop.Method) int {
	return slices.IndexFunc([][]shop.Method{
		{shop.Belay, shop.BelayStock}, {shop.UniqueIndex, shop.Pessimistic}, {shop.RedisLock}, {shop.BelayMarked}, {shop.Optimistic}, {m},
	}, func(class []shop.Method) bool { return slices.Contains(class, m) })
}

func overTime(s result.Step) figure {
	p50, p99 := series{name: "p50", class: 0}, series{name: "p99", class: 1}
	for _, slice := range s.Series {
		p50.points = append(p50.points, point{x: slice.At, y: slice.P50})
		p99.points = append(p99.points, point{slice.At, slice.P99, slice.Errors > 0})
	}
	f := figure{Title: fmt.Sprintf("Latency over time: %s, %s keys, %d users", s.Method, s.Keys, s.Concurrency)}
	return f.draw(plot{title: "latency over time", x: "s", y: "ms", logY: true, killed: s.Killed}, []series{p50, p99})
}
