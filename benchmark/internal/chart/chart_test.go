package chart_test

import (
	"strings"
	"testing"

	"github.com/belaygo/belay/benchmark/internal/chart"
)

func TestBarsCutWhatIsFarTooLong(t *testing.T) {
	groups := []chart.Group{{Name: "a", Values: []float64{100, 120}}, {Name: "b", Values: []float64{90, 110}}}
	if text := chart.Bars("t", "ms", groups); strings.Contains(text, "notch") {
		t.Error("bars of one size have a notch")
	}
	groups[0].Values[0] = 5000
	text := chart.Bars("t", "ms", groups)
	if strings.Count(text, "notch") != 2 { // both its lines
		t.Errorf("a bar that is far too long has no notch:\n%s", text)
	}
	if !strings.Contains(text, ">5000<") {
		t.Error("its value is not told")
	}
}

func TestBarsLeaveOutWhatIsMissing(t *testing.T) {
	text := chart.Bars("t", "ms", []chart.Group{{Name: "a", Values: []float64{3, 0}, Spans: [][2]float64{{2, 4}}}})
	if n := strings.Count(text, "<rect"); n != 1 {
		t.Errorf("%d bars, want 1", n)
	}
	if !strings.Contains(text, "whisker") {
		t.Error("the span is not drawn")
	}
}

func TestLinesCrossWhatFailed(t *testing.T) {
	series := []chart.Series{{Name: "a <b>", Class: 4, Large: true, Points: []chart.Point{{X: 1, Y: 5}, {X: 2000, Y: 9000, Failed: true}}}}
	text := chart.Plot{Title: "t", X: "x", Y: "y", LogX: true, LogY: true, TicksX: []float64{1, 2000}, Mark: -1}.Lines(series)
	for want, n := range map[string]int{"<circle": 1, `class="cross l4"`: 1, `class="line l4 large"`: 1, "a &lt;b&gt;": 3, ">2k<": 1, "mark": 0} {
		if got := strings.Count(text, want); got != n {
			t.Errorf("%d times %s, want %d:\n%s", got, want, n, text)
		}
	}
}

func TestMark(t *testing.T) {
	p := chart.Plot{Title: "t", X: "x", Y: "y", Mark: 900, MarkName: "master killed"}
	text := p.Dots([]chart.Series{{Points: []chart.Point{{X: 10, Y: 1}, {X: 1000, Y: 2}}}})
	if !strings.Contains(text, `class="mark"`) || !strings.Contains(text, `class="marked end"`) {
		t.Errorf("the mark is missing, or its words leave the chart:\n%s", text)
	}
}
