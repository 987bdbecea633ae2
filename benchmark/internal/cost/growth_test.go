package cost_test

import (
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
	g := cost.Growth(of("a", 10, 5), of("a", 100, 6))
	if g.Micros != 1.2 || g.Statements != 1 || g.Fsyncs != 0 {
		t.Errorf("ratios %+v", g)
	}
}
