package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	"github.com/belaygo/belay/benchmark/internal/chart"
	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/shop"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"grouped": grouped, "groupedInt": func(n int) string { return grouped(int64(n)) }, "limit": limit, "verdict": verdict, "paper": paper, "name": name, "second": secondLayer,
	"f0": func(v float64) string { return fmt.Sprintf("%.0f", v) },
	"f1": func(v float64) string { return fmt.Sprintf("%.1f", v) },
	"f2": func(v float64) string { return fmt.Sprintf("%.2f", v) },
}).Parse(pageText))

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

// HTML returns the report of a run as one page that needs nothing else.
func HTML(r *result.Run) (string, error) {
	var b strings.Builder
	err := pageTemplate.Execute(&b, struct {
		*result.Run
		Through, Versions string
		Figures           []figure
		CPU               []cpuLine
	}{r, through(r), r.Machine.Software(), figures(r), cpuLines(r)})
	if err != nil {
		return "", fmt.Errorf("write the page: %w", err)
	}
	return b.String(), nil
}

func figures(r *result.Run) []figure {
	if r.Kind == result.Sustained {
		return curves(r)
	}
	oursAndPaper := []legend{{0, "measured here; whiskers: least and greatest round"}, {1, "the paper"}}
	all := []figure{
		{
			"Mean response by method, ms", oursAndPaper, drawBars(r, "ms", func(m result.Method) (float64, [2]float64, float64) {
				return m.Mean, m.Spread.Mean, paper(m.Method).meanMS
			}), "Absolute times of another machine mean nothing; compare methods within one colour. A notched bar is longer than the chart.",
		},
		{
			"Throughput by method, requests/s", oursAndPaper, drawBars(r, "requests/s", func(m result.Method) (float64, [2]float64, float64) {
				return m.Throughput, m.Spread.Throughput, paper(m.Method).perSecond
			}), "All requests of a round over the time from the first request to the last answer.",
		},
	}
	all = append(all, relative(r))
	if r.Timeline != nil {
		all = append(all, timelineFigure(r.Timeline))
	}
	return all
}

func drawBars(r *result.Run, unit string, of func(result.Method) (ours float64, span [2]float64, theirs float64)) template.HTML {
	var groups []chart.Group
	for _, m := range r.Methods {
		ours, span, theirs := of(m)
		groups = append(groups, chart.Group{Name: m.Method, Values: []float64{ours, theirs}, Spans: [][2]float64{span}})
	}
	return template.HTML(chart.Bars(unit+" by method", unit, groups)) //nolint:gosec // escaped where it is drawn
}

// relative shows what can be compared with the paper: methods within each of the
// two experiments.
func relative(r *result.Run) figure {
	var groups []chart.Group
	for _, m := range r.Methods {
		base := shop.UniqueIndex
		if shop.Method(m.Method).Sells() {
			base = shop.Pessimistic
		}
		ours, ok := r.Between(m.Method, string(base))
		if !ok || m.Method == string(base) {
			continue
		}
		g := chart.Group{Name: m.Method, Values: []float64{ours, 0}}
		if theirs := paper(m.Method); theirs.meanMS > 0 {
			g.Values[1] = theirs.meanMS / paper(string(base)).meanMS
		}
		groups = append(groups, g)
	}
	return figure{
		"Mean response as a share of the simplest method's", []legend{{0, "measured here"}, {1, "the paper"}},
		template.HTML(chart.Bars("mean response, relative", "times that of unique-index (inserts) or pessimistic (sales)", groups)), //nolint:gosec // escaped where it is drawn
		"This is what two machines can be compared by. Less is better.",
	}
}

// timelineFigure shows every request of a round.
func timelineFigure(t *result.Timeline) figure {
	kinds := []struct{ result, name string }{
		{"done", "done"}, {"busy", "turned away by the first layer"}, {"duplicate", "refused by the second layer"},
		{"intercepted", "lock failure caught"}, {"error", "error"},
	}
	f := figure{
		Title: fmt.Sprintf("Latency over time: %s, round %d, one dot per request", t.Method, t.Round),
		Note: "A dot stands where its answer came. The request whose lock failure is caught stands still with its lock, " +
			"by intention, until another instance has written its order.",
	}
	var all []chart.Series
	for i, k := range kinds {
		s := chart.Series{Name: k.name, Class: i, Large: k.result == "intercepted"}
		for _, p := range t.Points {
			if p.Result == k.result {
				s.Points = append(s.Points, chart.Point{X: p.Start + p.Latency, Y: p.Latency})
			}
		}
		if len(s.Points) > 0 {
			all = append(all, s)
			f.Legend = append(f.Legend, legend{i, k.name})
		}
	}
	plot := chart.Plot{
		Title: "latency over time", X: "time of the answer, ms", Y: "latency, ms", LogY: true,
		Mark: t.Killed, MarkName: "master killed",
	}
	f.SVG = template.HTML(plot.Dots(all)) //nolint:gosec // numbers
	return f
}

// A cpuLine is the processor time of one method.
type cpuLine struct {
	Method string
	Groups []string
	Spent  []float64
	Sum    float64
}

func cpuLines(r *result.Run) []cpuLine {
	var lines []cpuLine
	for _, m := range r.Methods {
		line := cpuLine{Method: m.Method, Groups: []string{"load", "nginx", "instances", "redis", "mariadb"}}
		for _, group := range line.Groups {
			line.Spent = append(line.Spent, m.CPU[group])
			line.Sum += m.CPU[group]
		}
		lines = append(lines, line)
	}
	return lines
}
