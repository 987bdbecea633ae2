package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/benchmark/internal/report"
	"github.com/belaygo/belay/benchmark/internal/result"
)

func table1() *result.Run {
	r := &result.Run{
		Kind: result.Table1, Command: "go -C benchmark run . table1 <&>", Started: time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC), Complete: true,
		Rows: 10_000_000, Requests: 1000, Instances: 3, Rounds: 1, Balance: "nginx", Load: "built-in", Problems: []string{},
		Timeline: &result.Timeline{Method: "belay", Round: 1, Killed: 120, Points: []result.Point{
			{Start: 1, Latency: 80, Result: "done"}, {Start: 2, Latency: 3, Result: "busy"}, {Start: 3, Latency: 400, Result: "intercepted"},
		}},
	}
	for name, mean := range map[string]float64{"unique-index": 400, "belay": 200} {
		r.Methods = append(r.Methods, result.Combine(name, "insert", []result.Round{{
			Round: 1, Times: result.Times{Mean: mean, P50: mean, P95: mean, P99: mean, Throughput: 1e5 / mean}, Results: map[string]int{"intercepted": 1},
			Counts: result.Counts{
				Succeeded: 500, FirstLayer: 480, SecondLayer: 20, Killed: name == "belay", Published: 3, Received: 3, CPU: map[string]float64{"redis": 12},
			},
		}}))
	}
	r.Targets = result.Ratios(r.Methods)
	return r
}

func TestMarkdown(t *testing.T) {
	text := report.Markdown(table1())
	for _, want := range []string{
		"1,000 requests at once, 3 instances, 10,000,000 rows, through nginx",
		"| unique-index | insert | 500 | 500 | 400 [400-400] | 250 [250-250] | 400 | 400 | 400 | 1050 | 295.5 |",
		"| unique-index | 480 | 20 | 0 | 1 | 0 | 0 | 0 | 0 | 3 / 3 |",
		"| belay (a master killed) | insert |",
		"| 768 | 323.7 |",
		"| belay / unique-index, mean response | 0.50 | ≤ 0.60 | reached |",
		"21 November 2026 14:00 UTC",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	sameColumns(t, text)
}

// sameColumns checks that the rows of each table have one length.
func sameColumns(t *testing.T, text string) {
	t.Helper()
	columns := 0
	for line := range strings.Lines(text) {
		n := strings.Count(line, "|")
		if n == 0 || !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		if columns != 0 && n != columns {
			t.Errorf("%d columns instead of %d: %s", n, columns, line)
		}
		columns = n
	}
}

func TestMarkdownTellsFaults(t *testing.T) {
	r := table1()
	r.Complete, r.Problems = false, []string{"belay, round 1: a | b\nc"}
	text := report.Markdown(r)
	for _, want := range []string{"The run was not complete.", `**Fault**: belay, round 1: a \| b c`} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q", want)
		}
	}
}

func TestHTMLStandsAlone(t *testing.T) {
	for name, r := range map[string]*result.Run{"table1": table1(), "empty": {Kind: result.Table1}} {
		text, err := report.HTML(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, outside := range []string{"http://", "https://", "src=", "<script", "@import", "url("} {
			if strings.Contains(text, outside) {
				t.Errorf("%s: the page has %q", name, outside)
			}
		}
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("%s: a number is none", name)
		}
		wellFormed(t, name, text)
	}
	text, err := report.HTML(table1())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"master killed", "lock failure caught", "the paper", "table1 &lt;&amp;&gt;", `class="s1"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(text, "<svg"); n != 4 {
		t.Errorf("%d charts, want 4", n)
	}
}

// wellFormed checks every chart as XML.
func wellFormed(t *testing.T, name, text string) {
	t.Helper()
	for rest := text; ; {
		_, after, ok := strings.Cut(rest, "<svg")
		if !ok {
			return
		}
		chart, more, _ := strings.Cut(after, "</svg>")
		rest = more
		d := xml.NewDecoder(strings.NewReader("<svg" + chart + "</svg>"))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: a chart is not well-formed: %v", name, err)
			}
		}
	}
}
