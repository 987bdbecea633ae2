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
func Medians(costs []Cost) (all []Cost) {
	for len(costs) > 0 {
		first, same := costs[0], make(map[int64][]Cost)
		costs = slices.DeleteFunc(slices.Clone(costs), func(c Cost) bool {
			if c.Same(first) {
				same[c.Rows] = append(same[c.Rows], c)
			}
			return c.Same(first)
		})
		for _, rows := range slices.Sorted(maps.Keys(same)) {
			m := Cost{Method: first.Method, Case: first.Case, Rows: rows, Operations: first.Operations}
			for _, f := range Figures() {
				*f.of(&m) = measure.MedianOf(same[rows], f.In)
			}
			all = append(all, m)
		}
	}
	return all
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
