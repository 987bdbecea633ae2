package chaos_test

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// An overlap is two calls that had the lock on one key at a time, both of which
// reached their write or found what the other wrote.
type overlap struct{ first, second *call }

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
					found = append(found, overlap{a, b})
				}
			}
		}
	}
	return found
}

// reported reports whether one of the two was told about, by whoever had its
// grant then.
func (o overlap) reported() bool {
	for _, c := range slices.Concat(o.first.grant.calls, o.second.grant.calls) {
		if len(c.alarms()) > 0 {
			return true
		}
	}
	return false
}

// hold returns from when to when a call had the lock, as far as that can be seen
// from outside. It begins with the grant, or with the operation if the lock was
// handed over in memory. It ends with the release, or with the transaction if the
// lock was handed over again. A transaction without an answer to its COMMIT ends
// when Do returns. That is as long as the call had to report what becomes of its lock;
// what it wrote may take effect later: see open.
func (c *call) hold() (from, to int64) {
	from, to = c.begun, cmp.Or(c.ended, c.returned)
	if c.grant.calls[0] == c {
		from = c.grant.granted
	}
	if last := c.grant.calls[len(c.grant.calls)-1]; last == c && c.grant.release > 0 {
		to = c.grant.release
	}
	return from, cmp.Or(to, c.died, math.MaxInt64)
}

// over returns when the call's hold of the lock no longer matters: at its release, or at
// the end of its transaction if that was rolled back and the call was told afterwards that
// it had the lock.
func (c *call) over() int64 {
	refused := c.result == duplicate || c.result == stale || c.result == conflict
	if refused && c.inspected && c.holder == c.grant.owner && c.ended > 0 {
		return c.ended
	}
	_, to := c.hold()
	return to
}

// blindSpot says why nobody could report the overlap, or returns "". The calls of
// the earlier grant find out together that it was lost, from this one on.
func (o overlap) blindSpot() string {
	early, late := o.first, o.second
	if late.grant.granted < early.grant.granted {
		early, late = late, early
	}
	if early.grant.waiting && early.grant.release == 0 {
		return "it may have been handed to a caller that was killed"
	}
	for _, c := range append(early.grant.from(early), late) {
		if reason := c.mute(); reason != "" {
			return reason
		}
	}
	return ""
}

// from returns c and the calls that had the grant after it.
func (g *grant) from(c *call) []*call { return slices.Clone(g.calls[slices.Index(g.calls, c):]) }

// mute says why the call could not report that its grant was lost, or returns "".
func (c *call) mute() string {
	switch {
	case c.returned == 0:
		return "its worker was killed before it could report"
	case c.unpublished:
		return "neither the database nor the broker took its event"
	case c.result == unknown && (!c.inspected || c.holder == c.grant.owner):
		return "its commit had no answer, which is what was reported, and it could not see that its lock was gone"
	case c.result == done && c.grant.released == unanswered:
		return "the release after its commit met a dead node"
	case strings.HasPrefix(c.result, failed) && c.grant.released == unanswered:
		return "the release after its rollback met a dead node"
	case (c.result == duplicate || c.result == stale || c.result == conflict) && !c.inspected && c.grant.released == unanswered:
		return "it was a repeat or a conflict, and both the question who has the lock and the release met a dead node"
	}
	return ""
}
