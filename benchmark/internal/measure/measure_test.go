package measure_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

func TestMeterCountsThisProcess(t *testing.T) {
	m := measure.NewMeter()
	m.AddTree("self", os.Getpid())
	m.Add("gone", 1<<30)
	before := m.Read()
	for deadline := time.Now().Add(10 * time.Second); m.Since(before)["self"] == 0; {
		if time.Now().After(deadline) {
			t.Fatal("reading the meter for 10 s has used no processor time")
		}
	}
	if used := m.Since(before)["gone"]; used != 0 {
		t.Errorf("a process that does not exist has used %v ms", used)
	}
}

func TestDescribe(t *testing.T) {
	m := measure.Describe(t.Context())
	if m.Cores < 1 || m.Memory == "unknown" || m.Load == "unknown" || !strings.HasPrefix(m.Versions["go"], "go") {
		t.Errorf("machine %+v", m)
	}
	m.Note("none", "")
	if _, ok := m.Versions["none"]; ok {
		t.Error("a version that is not known is noted")
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{7}, 7},
		{[]float64{9, 1}, 5},
		{[]float64{100, 2, 3}, 3},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := measure.Median(tt.values); got != tt.want {
			t.Errorf("median(%v) = %v, want %v", tt.values, got, tt.want)
		}
	}
}

func TestHistogram(t *testing.T) {
	var h measure.Histogram
	if h.Count() != 0 || h.Mean() != 0 || h.Quantile(0.99) != 0 {
		t.Errorf("empty: %d durations, mean %v, p99 %v", h.Count(), h.Mean(), h.Quantile(0.99))
	}
	for ms := 1; ms <= 1000; ms++ {
		h.Add(time.Duration(ms) * time.Millisecond)
	}
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var read, merged measure.Histogram
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	merged.Merge(&h)
	merged.Merge(new(measure.Histogram))
	for name, h := range map[string]*measure.Histogram{"counted": &h, "read from JSON": &read, "merged": &merged} {
		if h.Count() != 1000 {
			t.Errorf("%s: %d durations, want 1000", name, h.Count())
		}
		near(t, name+", mean", h.Mean(), 500500*time.Microsecond)
		for q, want := range map[float64]int{0: 1, 0.001: 1, 0.5: 500, 0.95: 950, 0.99: 990, 1: 1000} {
			near(t, fmt.Sprintf("%s, quantile %v", name, q), h.Quantile(q), time.Duration(want)*time.Millisecond)
		}
	}
}

func near(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if off := math.Abs(float64(got)/float64(want) - 1); off > 0.002 {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestHistogramTakesAnyDuration(t *testing.T) {
	var h measure.Histogram
	for _, d := range []time.Duration{-1, 0, 1, time.Hour, math.MaxInt64} {
		h.Add(d)
	}
	if h.Count() != 5 || h.Quantile(0.4) != 0 || h.Quantile(1) < 9*time.Minute {
		t.Errorf("%d durations from %v to %v; want 5, none left out", h.Count(), h.Quantile(0.4), h.Quantile(1))
	}
}

func TestHistogramOfNoJSON(t *testing.T) {
	if err := json.Unmarshal([]byte(`{"1.5":1}`), new(measure.Histogram)); err == nil {
		t.Error("no error for a key that is no number of nanoseconds")
	}
}
