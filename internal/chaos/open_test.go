package chaos_test

import (
	"cmp"
	"math"
)

// open reports whether nobody knows, as far as the workers saw, what became of what the
// call wrote: it never returned, or with an unknown outcome, or a COMMIT of it got no
// answer. Nothing that its worker or Belay saw later closes it. A server goes on with a
// COMMIT whose client is gone, for as long as it likes.
func (c *call) open() bool {
	return c.wrote > 0 && (c.returned == 0 || c.result == unknown || c.doubtful)
}

// over returns when nothing of what the call wrote can take effect any more: when its
// transaction ended, and for a call that is open, when the database proved what became
// of it. Most are proven soon, as the keys are few.
func (h *history) over(c *call) int64 {
	if !c.open() {
		return cmp.Or(c.ended, c.returned)
	}
	if _, found := h.overs[c]; !found {
		h.overs[c] = h.proven(c)
	}
	return h.overs[c]
}

func (h *history) proven(c *call) int64 {
	proven := int64(math.MaxInt64)
	for _, other := range h.byKey[c.key] {
		if at := other.proves(c); at > 0 && other != c {
			proven = min(proven, at)
		}
	}
	for _, f := range h.faults {
		if (f.Kind == databaseKilled || f.Kind == allKilled) && c.attempt <= f.From { // its session did not survive that
			proven = min(proven, f.To)
		}
	}
	return proven
}

// proves returns when the call saw that what the other one wrote is in the row by now or
// never will be, or 0. A row that is inserted is proven by one that is there, an update
// by a version beyond the one that it was made from.
func (c *call) proves(other *call) int64 {
	switch {
	case other.version > 0 && c.version > other.version:
		return c.read
	case other.version > 0:
		return 0
	case c.result == duplicate && c.request == other.request:
		return c.returned
	case c.result == done: // and ended, if its COMMIT was answered
		return c.ended
	}
	return 0
}
