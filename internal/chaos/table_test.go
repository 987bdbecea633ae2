package chaos_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// A row is a run in one line of a table: make chaos ON=beds prints those of all beds.
type row struct {
	bed        string
	faults     map[faultKind]int
	operations int
	unknown    int
	violations int
	longest    time.Duration // call of Do, beyond what its operation takes by itself
	still      time.Duration // the longest time in which no operation of any worker was done
}

// rowHead is the head of the table.
const rowHead = "| database | faults | operations | unknown | violations | longest Do | all stood still |"

func (r row) String() string {
	var faults []string
	for _, kind := range slices.SortedFunc(maps.Keys(r.faults), func(a, b faultKind) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	}) {
		faults = append(faults, fmt.Sprintf("%s %d", kind, r.faults[kind]))
	}
	return fmt.Sprintf("| %s | %s | %d | %d | %d | %.1f s | %.1f s |",
		r.bed, strings.Join(faults, ", "), r.operations, r.unknown, r.violations, r.longest.Seconds(), r.still.Seconds())
}

// rank sorts the faults of a bed before those of all runs.
func rank(kind faultKind) int {
	if kind.ofBed() || kind == databaseKilled {
		return 0
	}
	return 1
}

// newRow sums a run up, of which so many things were found to be wrong.
func newRow(r run, h *history, violations int) row {
	w := row{bed: r.head.Database, faults: count(r.faults), violations: violations, still: h.stoodStill()}
	for _, c := range firsts(h.calls) {
		w.operations++
		if c.result == unknown {
			w.unknown++
		}
		if c.returned > 0 && !h.paused(c) {
			w.longest = max(w.longest, time.Duration(c.returned-c.called)-takes(r.head.Seed, c.name))
		}
	}
	return w
}

// takes is how long the operation of a call takes by itself.
func takes(seed uint64, name string) time.Duration {
	first, _, _ := strings.Cut(name, ".again")
	return draw(draws(seed, first), 0, first).takes
}

// paused reports whether the worker of a call was paused meanwhile.
func (h *history) paused(c *call) bool {
	return slices.ContainsFunc(h.faults, func(f fault) bool {
		return f.Kind == pause && f.Subject == c.worker && f.From <= c.returned && f.To >= c.called
	})
}

// stoodStill returns the longest time between two operations that were done.
func (h *history) stoodStill() time.Duration {
	var ends []int64
	for _, c := range h.calls {
		if c.result == done {
			ends = append(ends, c.returned)
		}
	}
	slices.Sort(ends)
	still := int64(0)
	for i := 1; i < len(ends); i++ {
		still = max(still, ends[i]-ends[i-1])
	}
	return time.Duration(still)
}

// TestRow sums two calls up, of which one was paused.
func TestRow(t *testing.T) {
	s := int64(time.Second)
	records := recordsOf(map[string][]line{
		"a": {
			{T: 1 * s, At: called, Do: "a.0", Key: "k"}, {T: 3 * s, At: returned, Do: "a.0", Key: "k", Result: done},
			{T: 3 * s, At: called, Do: "a.1", Key: "k"}, {T: 9 * s, At: returned, Do: "a.1", Key: "k", Result: unknown},
		},
		"b": {{T: 1 * s, At: called, Do: "b.0", Key: "k"}, {T: 8 * s, At: returned, Do: "b.0", Key: "k", Result: done}},
	})
	r := run{head: head{Database: "galera", Seed: 1}, records: records, faults: []fault{{pause, "b", 2 * s, 8 * s}, {nodeKilled, "galera-1", 3 * s, 4 * s}, {wipe, "k", 1, 1}}}
	got := newRow(r, read(records, r.faults), 2)
	longest := 6*time.Second - takes(1, "a.1")
	want := fmt.Sprintf("| galera | node killed 1, lock wiped 1, worker paused 1 | 3 | 1 | 2 | %.1f s | 5.0 s |", longest.Seconds())
	if got.String() != want {
		t.Errorf("the row is\n%s, want\n%s", got, want)
	}
	if strings.Count(rowHead, "|") != strings.Count(want, "|") {
		t.Error("the head has another number of columns")
	}
}
