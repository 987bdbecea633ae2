package measure_test

import (
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

func TestHistogram(t *testing.T) {
	h := measure.NewHistogram()
	for ms := 1; ms <= 1000; ms++ {
		h.Add(time.Duration(ms) * time.Millisecond)
	}
	for _, tc := range []struct {
		name      string
		got, want float64
	}{
		{"mean", h.Mean(), 500.5}, {"p50", h.Quantile(0.5), 500}, {"p95", h.Quantile(0.95), 950}, {"p99", h.Quantile(0.99), 990},
	} {
		if tc.got < tc.want*0.998 || tc.got > tc.want*1.002 {
			t.Errorf("%s is %v, want %v", tc.name, tc.got, tc.want)
		}
	}
	h.Add(time.Hour)
	h.Add(-time.Second)
	if h.Count() != 1002 {
		t.Errorf("%d values, want 1002: none is left out", h.Count())
	}
}
