package cost

import (
	"maps"
	"math"
	"slices"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// Same tells whether d is of the same operation, maybe on another size.
func (c Cost) Same(d Cost) bool { return c.Method == d.Method && c.Case == d.Case }

// Medians makes one Cost of all that are of the same operation on the same size:
// in the order in which operations came first, and of sizes.
func Medians(costs []Cost) []Cost {
	var all []Cost
	for len(costs) > 0 {
		var same, others []Cost
		for _, c := range costs {
			if c.Same(costs[0]) {
				same = append(same, c)
			} else {
				others = append(others, c)
			}
		}
		all, costs = append(all, bySize(same)...), others
	}
	return all
}

// bySize makes a Cost per size.
func bySize(costs []Cost) (all []Cost) {
	of := make(map[int64][]Cost)
	for _, c := range costs {
		of[c.Rows] = append(of[c.Rows], c)
	}
	for _, rows := range slices.Sorted(maps.Keys(of)) {
		all = append(all, median(of[rows]))
	}
	return all
}

func median(costs []Cost) Cost {
	m := Cost{Method: costs[0].Method, Case: costs[0].Case, Rows: costs[0].Rows, Operations: costs[0].Operations}
	for _, f := range Figures() {
		*f.of(&m) = measure.MedianOf(costs, f.In)
	}
	return m
}

// A kind of figures tells what they are counted in.
type kind int

const (
	counted kind = iota
	timed        // of a clock that is good for it
	ticked       // microseconds that the kernel brings up to date at its ticks
)

// stray returns by how much the figure may differ for nothing: for what the servers
// do by themselves meanwhile, such as writing pages back, and for one tick of 10 ms
// in all operations of c.
func (f Figure) stray(c Cost) float64 {
	switch f.kind {
	case timed:
		return 1
	case ticked:
		return 10_000 / float64(max(1, c.Operations))
	case counted:
	}
	return 0.05
}

// Growth is a Cost with ratios for figures: those of large by those of small,
// +Inf where only small has none, 0 where large has next to none either.
func Growth(small, large Cost) Cost {
	g := Cost{Method: small.Method, Case: small.Case}
	for _, f := range Figures() {
		switch v, w := f.In(small), f.In(large); {
		case v > 0:
			*f.of(&g) = w / v
		case w > f.stray(large):
			*f.of(&g) = math.Inf(1)
		}
	}
	return g
}

// Greatest returns the figure that grows by the greatest ratio from small to
// large, and that ratio: 0 if no figure differs by more than it may for nothing.
func Greatest(small, large Cost) (name string, ratio float64) {
	growth := Growth(small, large)
	for _, f := range Figures() {
		if v := f.In(growth); v > ratio && math.Abs(f.In(large)-f.In(small)) > f.stray(large) {
			name, ratio = f.Name, v
		}
	}
	return name, ratio
}
