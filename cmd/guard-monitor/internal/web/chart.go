package web

import (
	"fmt"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
)

// A chart is drawn in a box of this size, which the page then stretches.
const (
	chartWidth  = 600
	chartHeight = 80
)

// chart is bars with marks above them, in the box's units.
type chart struct {
	Bars   []bar
	Marks  []mark
	Max    store.Bounded
	Sum    store.Bounded
	Faults int // marks of class failover
}

type bar struct{ X, Y, Width, Height string }

type mark struct {
	X     string
	Class string // failover or fault
	Entry watch.Entry
}

// bars draws counts side by side. A bar that is not 0 can be seen.
func bars(counts []store.Bounded, marks []mark) chart {
	c := chart{Marks: marks, Sum: sum(counts)}
	for _, n := range counts {
		c.Max = store.Bounded{N: max(c.Max.N, n.N), More: c.Max.More || n.More}
	}
	width := float64(chartWidth) / float64(max(len(counts), 1))
	for i, n := range counts {
		if n.N == 0 {
			continue
		}
		height := max(float64(n.N)/float64(c.Max.N)*(chartHeight-8), 2)
		c.Bars = append(c.Bars, bar{
			X: unit(float64(i)*width + width*.1), Y: unit(chartHeight - height),
			Width: unit(width * .8), Height: unit(height),
		})
	}
	for _, m := range marks {
		if m.Class == "failover" {
			c.Faults++
		}
	}
	return c
}

func unit(f float64) string { return fmt.Sprintf("%.1f", f) }

// perStep is how many events there were in each step of a time. Counting them is slow.
type perStep struct {
	from, to time.Time
	counts   []store.Bounded
}

func sum(list []store.Bounded) (all store.Bounded) {
	for _, c := range list {
		all.N += c.N
		all.More = all.More || c.More
	}
	return all
}
