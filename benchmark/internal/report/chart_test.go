package report

import (
	"slices"
	"strings"
	"testing"
)

func TestBarsCutWhatIsFarTooLong(t *testing.T) {
	groups := []group{{name: "a", values: [2]float64{100, 120}}, {name: "b", values: [2]float64{90, 110}}}
	if text := string(bars("t", "ms", groups)); strings.Contains(text, "notch") {
		t.Error("bars of one size have a notch")
	}
	groups[0].values[0] = 5000
	text := string(bars("t", "ms", groups))
	if strings.Count(text, "notch") != 2 { // both its lines
		t.Errorf("a bar that is far too long has no notch:\n%s", text)
	}
	if !strings.Contains(text, ">5000<") {
		t.Error("its value is not shown")
	}
}

func TestBarsLeaveOutWhatIsMissing(t *testing.T) {
	text := string(bars("t", "ms", []group{{"a", [2]float64{3, 0}, [2]float64{2, 4}}}))
	if n := strings.Count(text, "<rect"); n != 1 {
		t.Errorf("%d bars, want 1", n)
	}
	if !strings.Contains(text, "whisker") {
		t.Error("the span is not drawn")
	}
}

func TestLinesCrossWhatFailed(t *testing.T) {
	all := []series{{name: "a <b>", class: 4, large: true, points: []point{{x: 1, y: 5}, {x: 2000, y: 9000, failed: true}}}}
	text := string(plot{title: "t", x: "x", y: "y", logY: true, ticks: []float64{1, 2000}, killed: -1}.draw(all))
	for want, n := range map[string]int{"<circle": 1, `class="cross l4"`: 1, `class="line l4 large"`: 1, "a &lt;b&gt;": 2, ">2k<": 1, "mark": 0} {
		if got := strings.Count(text, want); got != n {
			t.Errorf("%d times %s, want %d:\n%s", got, want, n, text)
		}
	}
}

func TestMark(t *testing.T) {
	text := string(plot{title: "t", x: "x", y: "y", dots: true, killed: 900}.draw([]series{{points: []point{{x: 10, y: 1}, {x: 1000, y: 2}}}}))
	if !strings.Contains(text, `class="mark"`) || !strings.Contains(text, `class="marked end"`) {
		t.Errorf("the mark is missing, or its words leave the chart:\n%s", text)
	}
}

func TestTicks(t *testing.T) {
	for _, tc := range []struct {
		scale scale
		want  []float64
	}{
		{newScale(0, 1000, 0, 1, false), []float64{0, 500, 1000}},
		{newScale(0, 0.9, 0, 1, false), []float64{0, 0.2, 0.4, 0.6, 0.8}},
		{newScale(0, 16, 0, 1, false), []float64{0, 5, 10, 15}},
		{newScale(3, 2500, 0, 1, true), []float64{1, 10, 100, 1000, 10000}},
		{newScale(0, 0, 0, 1, true), []float64{0.1, 1}},
	} {
		got := tc.scale.ticks()
		if !slices.EqualFunc(got, tc.want, func(a, b float64) bool { return a > b*0.999-1e-9 && a < b*1.001+1e-9 }) {
			t.Errorf("from %v to %v: ticks %v, want %v", tc.scale.least, tc.scale.greatest, got, tc.want)
		}
	}
}
