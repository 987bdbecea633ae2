package sim

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// shrink returns a shorter schedule that breaks the same invariant. It takes choices away,
// most of which the player makes up for, brings together those of one actor, and takes
// operations away; for at most limit.
func shrink(t *testing.T, found result, limit time.Duration) result {
	t.Helper()
	deadline := time.Now().Add(limit)
	best, list := found, found.choices
	try := func(p plan, choices []choice) bool {
		if time.Now().After(deadline) {
			return false
		}
		r := simulate(t, p, &player{slices.Clone(choices)})
		if !sameProblem(r, found) {
			return false
		}
		best, list = r, choices
		return true
	}
	try(best.plan, list) // a player cannot make the quiet choices of a dice
	for again := true; again && time.Now().Before(deadline); {
		again = drop(list, func(shorter []choice) bool { return try(best.plan, shorter) })
		again = best.plan.fewer(func(p plan) bool { return try(p, list) }) || again
		again = gather(list, func(other []choice) bool { return try(best.plan, other) }) || again
	}
	return best
}

// sameProblem reports whether a breaks the invariant that b breaks first.
func sameProblem(a, b result) bool {
	name, _, _ := strings.Cut(b.problems[0], ":")
	return slices.ContainsFunc(a.problems, func(p string) bool { return strings.HasPrefix(p, name+":") })
}

// drop takes choices away, first many at once.
func drop(list []choice, try func([]choice) bool) (shorter bool) {
	for size := max(1, len(list)/2); size > 0; size /= 2 {
		for i := 0; i < len(list); {
			without := slices.Delete(slices.Clone(list), i, min(len(list), i+size))
			if try(without) {
				list, shorter = without, true
			} else {
				i += size
			}
		}
	}
	return shorter
}

// gather swaps neighbours where that brings choices of one actor together.
func gather(list []choice, try func([]choice) bool) (better bool) {
	for i := 0; i+2 < len(list); i++ {
		if actorOf(list[i]) == actorOf(list[i+1]) || actorOf(list[i]) != actorOf(list[i+2]) {
			continue
		}
		other := slices.Clone(list)
		other[i+1], other[i+2] = other[i+2], other[i+1]
		if try(other) {
			list, better = other, true
		}
	}
	return better
}

func actorOf(c choice) string {
	actor, _, _ := strings.Cut(c.on, ":")
	return actor
}

// fewer takes operations away, one at a time, the purge, and what tells requests apart.
func (p plan) fewer(try func(plan) bool) (fewer bool) {
	keep := func(q plan) {
		if try(q) {
			p, fewer = q, true
		}
	}
	if q := p; p.purges {
		q.purges = false
		keep(q)
	}
	if q := p; p.consumers > 0 {
		q.consumers = 0
		keep(q)
	}
	if q := p; p.relays > 1 {
		q.relays--
		keep(q)
	}
	if q := p; p.lasting != nothing {
		q.lasting = nothing
		keep(q)
	}
	for n := range p.work {
		for c := range p.work[n] {
			for i := range slices.Backward(p.work[n][c]) {
				keep(p.with(n, c, func(specs []spec) []spec { return slices.Delete(specs, i, i+1) }))
			}
			for i := range p.work[n][c] {
				if p.work[n][c][i].sends {
					keep(p.with(n, c, func(specs []spec) []spec { specs[i].sends = false; return specs }))
				}
				if p.work[n][c][i].content != "" && !p.work[n][c][i].work.calls {
					keep(p.with(n, c, func(specs []spec) []spec { specs[i].content = ""; return specs }))
				}
			}
		}
	}
	return fewer
}

// with returns a plan with other operations of one caller.
func (p plan) with(n, c int, change func([]spec) []spec) plan {
	p.work = slices.Clone(p.work)
	p.work[n] = slices.Clone(p.work[n])
	p.work[n][c] = change(slices.Clone(p.work[n][c]))
	return p
}
