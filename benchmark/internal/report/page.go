package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/belaygo/belay/benchmark/internal/chart"
	"github.com/belaygo/belay/benchmark/internal/result"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"grouped": grouped, "limit": limit, "verdict": verdict, "paper": paper, "name": name,
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
	}{r, through(r), versions(r), figures(r), cpuLines(r)})
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
			}), "Absolute times of another machine mean nothing; compare methods within one colour.",
		},
		{
			"Throughput by method, requests/s", oursAndPaper, drawBars(r, "requests/s", func(m result.Method) (float64, [2]float64, float64) {
				return m.Throughput, m.Spread.Throughput, paper(m.Method).perSecond
			}), "All requests of a round over the time from the first request to the last answer.",
		},
	}
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

// timelineFigure shows every request of a round.
func timelineFigure(t *result.Timeline) figure {
	kinds := []legend{{0, "done"}, {1, "turned away by the first layer"}, {2, "refused by the second layer"}, {3, "lock failure caught"}, {4, "error"}}
	series := make([]chart.Series, len(kinds))
	for i := range series {
		series[i].Class = kinds[i].Class
	}
	for _, p := range t.Points {
		at := slices.Index([]string{"done", "busy", "duplicate", "intercepted"}, p.Result)
		if at < 0 {
			at = len(series) - 1
		}
		series[at].Points = append(series[at].Points, [2]float64{p.Start + p.Latency, p.Latency})
	}
	plot := chart.Plot{
		Title: "latency over time", X: "time of the answer, ms", Y: "latency, ms", LogY: true,
		Mark: t.Killed, MarkName: "master killed",
	}
	return figure{
		fmt.Sprintf("Latency over time: %s, round %d, one dot per request", t.Method, t.Round), kinds,
		template.HTML(plot.Dots(series)), //nolint:gosec // numbers
		"A dot stands where its answer came.",
	}
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
