package cost_test

import (
	"math"
	"testing"

	"github.com/belaygo/belay/benchmark/internal/cost"
)

func of(method string, rows int64, micros float64) cost.Cost {
	return cost.Cost{Method: method, Case: "first", Rows: rows, Operations: 400, Micros: micros, Statements: 3}
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
}

// TestStrayTicks: only processor time is counted in ticks of the clock, and the
// fewer operations share one, the more of it may say nothing.
func TestStrayTicks(t *testing.T) {
	for _, tc := range []struct {
		operations    int
		micros, redis float64 // more of them
		sqlCPU        float64
		name          string
	}{
		{400, 0, 0, 0, ""},
		{400, 0, 0, 25, ""},
		{400, 0, 0, 26, "sql cpu µs"},
		{40, 0, 0, 250, ""},
		{4000, 0, 0, 25, "sql cpu µs"},
		{400, 0, 23, 0, "redis µs"},
		{400, 0, 1, 0, ""},
		{400, 20, 0, 0, "µs"},
	} {
		small := of("a", 10, 100)
		small.Operations, small.RedisMicros, small.MySQLCPU = tc.operations, 15, 100
		large := small
		large.Micros, large.RedisMicros, large.MySQLCPU = 100+tc.micros, 15+tc.redis, 100+tc.sqlCPU
		if name, ratio := cost.Greatest(small, large); name != tc.name || (ratio > 1) != (name != "") {
			t.Errorf("%+v: greatest growth is %v of %q", tc, ratio, name)
		}
	}
}
