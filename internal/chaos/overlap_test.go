package chaos_test

import (
	"cmp"
	"math"
	"slices"

	"github.com/belaygo/belay/notify"
)

// An overlap is two calls that had the lock on one key at a time, both of which
// reached their write or found what the other wrote. The lock of the early one, which was
// granted first, was lost.
type overlap struct{ early, late *call }

func (h *history) overlaps() (found []overlap) {
	byKey := make(map[string][]*call)
	for _, c := range h.calls {
		if c.grant != nil && (c.wrote > 0 || c.foundAnother()) {
			byKey[c.key] = append(byKey[c.key], c)
		}
	}
	for _, calls := range byKey {
		slices.SortFunc(calls, func(a, b *call) int {
			from, _ := a.hold()
			other, _ := b.hold()
			return cmp.Compare(from, other)
		})
		for i, a := range calls {
			end := a.over()
			for _, b := range calls[i+1:] {
				from, _ := b.hold()
				if from >= end {
					break
				}
				if a.grant != b.grant && (a.wrote > 0 || b.wrote > 0) {
					found = append(found, overlapOf(a, b))
				}
			}
		}
	}
	return found
}

func overlapOf(a, b *call) overlap {
	if b.grant.granted < a.grant.granted {
		a, b = b, a
	}
	return overlap{a, b}
}

// unordered reports whether the locks were asked for at the same time. Which one was granted
// first, and lost, is not known then.
func (o overlap) unordered() bool { return o.late.grant.asked < o.early.grant.granted }

// reported reports whether it was told that the early lock was lost, by whoever had that
// lock, or that its holder wrote, by whoever had the late one.
func (o overlap) reported() bool {
	alarmed := func(c *call) bool { return len(c.alarms()) > 0 }
	if slices.ContainsFunc(o.early.grant.calls, alarmed) {
		return true
	}
	return slices.ContainsFunc(o.late.grant.calls, func(c *call) bool {
		return c.count(notify.VerdictOverlap) > 0 || o.unordered() && alarmed(c)
	})
}

// hold returns from when to when a call had the lock, as far as that can be seen
// from outside. It begins with the grant, or with the operation if the lock was
// handed over in memory. It ends with the release, or with the transaction if the
// lock was handed over again. A transaction without an answer to its COMMIT ends
// when Do returns. That is as long as the call had to report what becomes of its lock;
// what it wrote may take effect later: see open.
func (c *call) hold() (from, to int64) {
	from, to = c.begun, cmp.Or(c.ended, c.returned, c.died, math.MaxInt64)
	if c.grant.calls[0] == c {
		from = c.grant.granted
	}
	if last := c.grant.calls[len(c.grant.calls)-1]; c.grant.release > 0 && (last == c || to > c.grant.release) {
		to = c.grant.release
	}
	return from, to
}

// over returns when the call's hold of the lock no longer matters: at its release. If the
// call was told that it has the lock, it is the end of its transaction that was rolled back
// before, or the answer if the outcome of its COMMIT is unknown: such a lock is never
// released.
func (c *call) over() int64 {
	_, to := c.hold()
	switch {
	case !c.inspected || c.holder != c.grant.owner:
	case c.refused() && c.ended > 0:
		return c.ended
	case c.result == unknown:
		return min(to, c.inspectedAt)
	}
	return to
}

// refused reports whether the database refused what the call wrote, and nothing was said of
// its lock.
func (c *call) refused() bool {
	return c.result == duplicate || c.result == stale || c.result == conflict
}
