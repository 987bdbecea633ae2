package relay

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A lane with many rows of parked keys is read by itself, with pauses, and the others together.
func TestPaceOfASlowLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 50 * time.Millisecond
		var p pace
		lanes := []int{1, 2, 3}
		p.record(lanes, 10*limit, limit)
		together, alone := p.due(lanes)
		if len(together) != 0 || !slices.Equal(alone, lanes) {
			t.Fatalf("after a slow read: %v together, %v alone", together, alone)
		}
		for _, n := range lanes {
			d := limit
			if n == 2 {
				d = 10 * limit
			}
			p.record([]int{n}, d, limit)
		}
		if together, alone = p.due(lanes); !slices.Equal(together, []int{1, 3}) || len(alone) != 0 {
			t.Fatalf("one is slow: %v together, %v alone", together, alone)
		}
		<-time.After(slowPause * 10 * limit)
		if _, alone = p.due(lanes); !slices.Equal(alone, []int{2}) {
			t.Fatalf("after the pause: %v alone", alone)
		}
		p.record([]int{2}, limit, limit)
		if together, _ = p.due(lanes); !slices.Equal(together, lanes) {
			t.Fatalf("none is slow: %v together", together)
		}
	})
}

// A database that is slow with all lanes is not asked lane by lane again and again.
func TestPaceOfASlowDatabase(t *testing.T) {
	const limit = 50 * time.Millisecond
	var p pace
	lanes := []int{1, 2, 3}
	p.record(lanes, 2*limit, limit)
	for _, n := range lanes {
		p.record([]int{n}, limit, limit)
	}
	for _, d := range []time.Duration{limit, 2 * limit, 4 * limit} {
		together, _ := p.due(lanes)
		if !slices.Equal(together, lanes) {
			t.Fatalf("%v together", together)
		}
		p.record(lanes, d, limit)
	}
	p.record(lanes, 5*limit, limit)
	if together, alone := p.due(lanes); len(together) != 0 || len(alone) != 3 {
		t.Fatalf("slower than tolerated: %v together, %v alone", together, alone)
	}
}
