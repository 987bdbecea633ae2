package report

import (
	"fmt"
	"html/template"

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
			f.Legend = append(f.Legend, legend{s.class, s.name})
		}
	}
	f.SVG = plot{title: "latency over time", x: "time of the answer, ms", y: "latency, ms", killed: t.Killed}.draw(all)
	return f
}
