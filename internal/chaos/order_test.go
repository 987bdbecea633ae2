package chaos_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// An effect is a version of a row that a call which was done has written.
type effect struct {
	call    *call
	key     string
	version int64
}

// updated are the classes whose rows have a version that grows by one with each change.
var updated = []class{counters, stamped, pairs, items, accounts, stocks, tallies, depots}

// effectsOf returns the effects of the calls that were done, by row and in the order of their versions.
func (h *history) effectsOf() map[string][]effect {
	of := make(map[string][]effect)
	for _, c := range h.calls {
		name, _, _ := strings.Cut(c.key, ":")
		if c.result != done || c.undone || !slices.Contains(updated, class(name)) {
			continue
		}
		version := c.version + 1
		if c.combines {
			version = c.made
		}
		if version > 1 { // else it has read nothing: it was answered from the store, say
			of[c.key] = append(of[c.key], effect{c, c.key, version})
		}
	}
	for _, es := range of {
		slices.SortFunc(es, func(a, b effect) int { return cmp.Compare(a.version, b.version) })
	}
	return of
}

// A before says why one call took effect before another: by the versions of a row, or as it had
// returned when the other one was called.
type before struct {
	to  *node
	why string
}

// A node is one of the graph of what came before what: a call, or a moment of time. Moments are a
// chain, so that a call needs one arrow to all that were called after it had returned.
type node struct {
	call *call
	next []before

	index, low int
	open       bool
}

// graphOf returns the nodes of all effects, with the arrows of each row and of time.
func graphOf(of map[string][]effect) (all []*node) {
	nodes := make(map[string]*node)
	for _, es := range of {
		for _, e := range es {
			if name := e.call.name; nodes[name] == nil {
				nodes[name] = &node{call: e.call}
				all = append(all, nodes[name])
			}
		}
	}
	for key, es := range of {
		for i := 1; i < len(es); i++ {
			p, n := nodes[es[i-1].call.name], nodes[es[i].call.name]
			p.next = append(p.next, before{n, fmt.Sprintf("%s, version %d before %d", key, es[i-1].version, es[i].version)})
		}
	}
	return append(all, chain(all)...)
}

// chain adds a moment for each return, in their order, and the arrows between those and the calls.
func chain(calls []*node) (times []*node) {
	byEnd := slices.SortedFunc(slices.Values(calls), func(a, b *node) int { return cmp.Compare(a.call.returned, b.call.returned) })
	for i, n := range byEnd {
		at := &node{}
		n.next = append(n.next, before{at, "returned"})
		if i > 0 {
			times[i-1].next = append(times[i-1].next, before{at, "time"})
		}
		times = append(times, at)
	}
	for _, n := range calls {
		i, _ := slices.BinarySearchFunc(byEnd, n.call.called, func(o *node, t int64) int { return cmp.Compare(o.call.returned, t) })
		if i > 0 {
			times[i-1].next = append(times[i-1].next, before{n, "called"})
		}
	}
	return times
}

// checkOrder checks that the calls which were done have an order in which each version of a row
// follows the one before, and in which none comes before one that had returned when it was called.
// The rows alone don't show it if two calls change the same two rows, each before the other. It
// returns how many changes of how many rows that was about.
func checkOrder(t *report, h *history) (changes, rows int) {
	t.Helper()
	of := h.effectsOf()
	for key, es := range of {
		for i := 1; i < len(es); i++ {
			if es[i].version == es[i-1].version {
				t.Errorf("two calls have written version %d of %s:\n%s\n%s", es[i].version, key, es[i-1].call, es[i].call)
			}
		}
		changes += len(es)
	}
	if found := cycle(graphOf(of)); found != nil {
		t.Errorf("calls that took effect before each other:\n%s", describe(found))
	}
	return changes, len(of)
}

// describe says of each call of a cycle why it came before the next one.
func describe(found []*node) string {
	var lines strings.Builder
	for i, n := range found {
		next := found[(i+1)%len(found)]
		at := slices.IndexFunc(n.next, func(b before) bool { return b.to == next })
		if n.call != nil {
			fmt.Fprintf(&lines, "%s (called %d)\n  %s\n", n.call, n.call.called, n.next[at].why)
		}
	}
	return lines.String()
}

// doneOn writes a call that is done, of rows at the versions that it has read.
func doneOn(do string, from, to int64, read map[string]int64) []line {
	var keys []string
	for key := range read {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	lines := []line{{T: from, At: called, Do: do, Key: keys[0], Also: keys[1:]}, {T: from + 1, At: begun, Do: do}}
	for _, key := range keys {
		lines = append(lines, line{T: from + 2, At: loaded, Do: do, Key: key, Version: read[key]})
	}
	return append(lines, line{T: to - 2, At: wrote, Do: do}, line{T: to - 1, At: ended, Do: do}, line{T: to, At: returned, Do: do, Key: keys[0], Result: done})
}

// TestOrder finds what no order of the calls explains.
func TestOrder(t *testing.T) {
	const cycleOf, twice = "calls that took effect before each other", "two calls have written version"
	a, b := keyOf(accounts, 1), keyOf(accounts, 2)
	both := func(va, vb int64) map[string]int64 { return map[string]int64{a: va, b: vb} }
	for _, tt := range []struct {
		name  string
		calls [][]line
		says  string // or nothing
	}{
		{"one after the other", [][]line{doneOn("a.0", 10, 20, both(1, 1)), doneOn("b.0", 30, 40, both(2, 2))}, ""},
		{"at a time", [][]line{doneOn("a.0", 10, 40, both(2, 2)), doneOn("b.0", 20, 30, both(1, 1))}, ""},
		{"a version between them is of a call that never returned", [][]line{doneOn("a.0", 10, 20, both(1, 1)), doneOn("b.0", 30, 40, both(3, 2))}, ""},
		{"the first on one row, the second on the other", [][]line{doneOn("a.0", 10, 40, both(1, 2)), doneOn("b.0", 20, 30, both(2, 1))}, cycleOf},
		{"it had returned before, and its version is the later one", [][]line{doneOn("a.0", 10, 20, both(2, 2)), doneOn("b.0", 30, 40, both(1, 1))}, cycleOf},
		{"three, of which each has a row with the next one", [][]line{
			doneOn("a.0", 10, 40, map[string]int64{a: 1, b: 2}),
			doneOn("b.0", 11, 41, map[string]int64{b: 1, keyOf(accounts, 3): 2}),
			doneOn("c.0", 12, 42, map[string]int64{keyOf(accounts, 3): 1, a: 2}),
		}, cycleOf},
		{"two of one version", [][]line{doneOn("a.0", 10, 40, both(1, 1)), doneOn("b.0", 20, 30, both(1, 1))}, twice},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := make(map[string][]line)
			for _, ls := range tt.calls {
				worker, _, _ := strings.Cut(ls[0].Do, ".")
				lines[worker] = append(lines[worker], ls...)
			}
			rep := &report{}
			checkOrder(rep, read(recordsOf(lines), nil))
			said := strings.Join(rep.failed, "\n")
			if !strings.Contains(said, tt.says) || tt.says == "" && said != "" {
				t.Errorf("said %q, want %q", said, tt.says)
			}
		})
	}
}
