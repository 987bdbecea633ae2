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

func TestDots(t *testing.T) {
	all := []series{{name: "a <b>", class: 4, large: true, points: []point{{1, 5}, {2000, 9000}}}}
	text := string(plot{title: "t", x: "x", y: "y", killed: -1}.draw(all))
	for want, n := range map[string]int{`<circle class="dot s4" r="5.0"`: 2, "a &lt;b&gt;": 2, ">2k<": 1, "mark": 0} {
		if got := strings.Count(text, want); got != n {
			t.Errorf("%d times %s, want %d:\n%s", got, want, n, text)
		}
	}
}

func TestMark(t *testing.T) {
	text := string(plot{title: "t", x: "x", y: "y", killed: 900}.draw([]series{{points: []point{{x: 10, y: 1}, {x: 1000, y: 2}}}}))
	if !strings.Contains(text, `class="mark"`) || !strings.Contains(text, `class="marked end"`) {
		t.Errorf("the mark is missing, or its words leave the chart:\n%s", text)
	}
}

func TestTicks(t *testing.T) {
	for _, tc := range []struct {
		scale scale
		want  []float64
	}{
		{linear(1000, 0, 1), []float64{0, 500, 1000}},
		{linear(0.9, 0, 1), []float64{0, 0.2, 0.4, 0.6, 0.8}},
		{linear(16, 0, 1), []float64{0, 5, 10, 15}},
		{logarithmic(3, 2500, 0, 1), []float64{1, 10, 100, 1000, 10000}},
		{logarithmic(0, 0, 0, 1), []float64{0.1, 1}},
	} {
		got := tc.scale.ticks()
		if !slices.EqualFunc(got, tc.want, func(a, b float64) bool { return a > b*0.999-1e-9 && a < b*1.001+1e-9 }) {
			t.Errorf("from %v to %v: ticks %v, want %v", tc.scale.least, tc.scale.greatest, got, tc.want)
		}
	}
}
