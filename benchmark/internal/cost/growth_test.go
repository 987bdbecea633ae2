package cost_test

import (
	"math"
	"testing"

	"github.com/belaygo/belay/benchmark/internal/cost"
)

func of(method string, rows int64, micros float64) cost.Cost {
	return cost.Cost{Method: method, Case: "first", Rows: rows, Micros: micros, Statements: 3}
}

func TestMedians(t *testing.T) {
	got := cost.Medians([]cost.Cost{
		of("b", 100, 10), of("b", 10, 4), of("a", 10, 7),
		of("b", 10, 8), of("b", 100, 30), of("a", 10, 9),
		of("b", 10, 5), of("b", 100, 20),
	})
	want := []cost.Cost{of("b", 10, 5), of("b", 100, 20), of("a", 10, 8)}
	if len(got) != len(want) {
		t.Fatalf("%d costs, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestGrowth(t *testing.T) {
	large := of("a", 100, 6)
	large.RedisIn, large.Fsyncs = 1, 0.04
	g := cost.Growth(of("a", 10, 5), large)
	if g.Micros != 1.2 || g.Statements != 1 || g.Fsyncs != 0 || !math.IsInf(g.RedisIn, 1) {
		t.Errorf("ratios %+v", g)
	}
}

func TestGreatest(t *testing.T) {
	type fsyncs struct{ small, large float64 }
	for _, tc := range []struct {
		fsyncs
		name  string
		ratio float64
	}{
		{fsyncs{1, 1}, "µs", 1.25},
		{fsyncs{1, 1.5}, "fsyncs", 1.5},
		{fsyncs{0.01, 0.04}, "µs", 1.25}, // others' writes
		{fsyncs{0.06, 0.1}, "µs", 1.25},
		{fsyncs{0, 0.04}, "µs", 1.25},
		{fsyncs{0, 1}, "fsyncs", math.Inf(1)},
	} {
		small, large := of("a", 10, 800), of("a", 100, 1000)
		small.Fsyncs, large.Fsyncs = tc.small, tc.large
		if name, ratio := cost.Greatest(small, large); name != tc.name || ratio != tc.ratio {
			t.Errorf("fsyncs %v: %s, %v; want %s, %v", tc.fsyncs, name, ratio, tc.name, tc.ratio)
		}
	}
	small, large := of("a", 10, 100), of("a", 100, 100)
	small.MySQLCPU, large.MySQLCPU = 0, 25 // a tick of the clock
	if name, ratio := cost.Greatest(small, large); name != "" || ratio != 0 {
		t.Errorf("no growth: %q, %v", name, ratio)
	}
}
