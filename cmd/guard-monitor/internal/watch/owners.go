package watch

import (
	"cmp"
	"maps"
	"slices"
)

// owner is a master with the slots that it serves, as far as the nodes that
// answer know.
type owner struct {
	id, addr string
	epoch    int64
	slots    []span
	own      bool // it says so itself
}

// owners returns the masters with the slots that each serves. A node's own view of
// itself outweighs that of others, and of several claims the one of the highest
// config epoch holds, as it does among the nodes. What was known of a node that does
// not answer stays while the others have only older views of it.
func owners(looks map[string]*look, known []owner) []owner {
	claims := make(map[string]owner)
	for _, addr := range slices.Sorted(maps.Keys(looks)) {
		for _, m := range looks[addr].view {
			if !m.master || len(m.slots) == 0 {
				continue
			}
			c := owner{id: m.id, addr: m.addr, epoch: m.epoch, slots: m.slots, own: m.myself}
			if m.myself {
				c.addr = addr
			}
			if old, ok := claims[m.id]; !ok || c.better(old) {
				claims[m.id] = c
			}
		}
	}
	for _, o := range known {
		if o.outlives(looks) {
			o.own = false
			claims[o.id] = o
		}
	}
	return settle(claims)
}

// outlives reports whether all that is said of an owner now is older than what
// is known of it.
func (c owner) outlives(looks map[string]*look) bool {
	said := false
	for _, l := range looks {
		for _, m := range l.view {
			if m.id != c.id {
				continue
			}
			if m.myself || m.epoch >= c.epoch {
				return false
			}
			said = true
		}
	}
	return said
}

func (c owner) better(old owner) bool {
	if c.own != old.own {
		return c.own
	}
	return c.epoch > old.epoch
}

// settle leaves each slot to one owner.
func settle(claims map[string]owner) []owner {
	order := slices.SortedFunc(maps.Values(claims), func(a, b owner) int {
		return cmp.Or(cmp.Compare(b.epoch, a.epoch), cmp.Compare(a.id, b.id))
	})
	var taken [slotCount]bool
	var list []owner
	for _, c := range order {
		free := make([]bool, slotCount)
		n := 0
		for _, s := range c.slots {
			for slot := s.first; slot <= s.last; slot++ {
				if !taken[slot] {
					taken[slot], free[slot] = true, true
					n++
				}
			}
		}
		if n > 0 {
			c.slots = spans(free)
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b owner) int { return cmp.Compare(a.slots[0].first, b.slots[0].first) })
	return list
}

// spans are the ranges of a set of slots.
func spans(set []bool) []span {
	var list []span
	for slot, in := range set {
		switch n := len(list); {
		case !in:
		case n > 0 && list[n-1].last == slot-1:
			list[n-1].last = slot
		default:
			list = append(list, span{slot, slot})
		}
	}
	return list
}

func count(list []span) (n int) {
	for _, s := range list {
		n += s.last - s.first + 1
	}
	return n
}

// before returns the owners in an earlier list that served some of the slots.
func before(list []owner, slots []span) []owner {
	var found []owner
	for _, o := range list {
		if slices.ContainsFunc(o.slots, func(a span) bool {
			return slices.ContainsFunc(slots, func(b span) bool { return a.first <= b.last && b.first <= a.last })
		}) {
			found = append(found, o)
		}
	}
	return found
}
