package chaos_test

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/belaygo/belay/notify"
)

// apart is how a part of a call ends that was not its last.
const apart = "run again"

// part begins the next part of a call, if it has begun before. A call that may share its
// transaction has a part for each that it took part in: as a mate of one call, of another,
// and alone. A part is a call for the oracle. Its lines are those of the one that leads.
func (r *record) part(c *call, at int64) *call {
	if c.begun == 0 {
		return c
	}
	n := &call{name: c.name, worker: c.worker, key: c.key, kind: c.kind, combines: true, called: c.called}
	n.legs = []*call{n}
	c.name, c.next = fmt.Sprintf("%s before %d", c.name, at), n
	c.returned, c.result = at, apart
	r.byDo[n.name], r.calls = n, append(r.calls, n)
	return n
}

// load notes that a call has got its row. If another runs a transaction on the key, it
// shares that. The others' changes are not in the database yet: it has got no version that
// would prove anything but the one that its leader has.
func (r *record) load(c *call, l line) {
	if lead := r.running[c.key]; c.combines && lead != nil && lead != c && !c.leads() {
		c = r.part(c, l.T)
		c.begun, c.attempt, c.looked, c.lead = l.T, lead.attempt, lead.looked, lead
		lead.mates = append(lead.mates, c)
		l.Version = cmp.Or(lead.version, l.Version)
	}
	for _, leg := range c.on(l.Key) {
		leg.add(l)
	}
}

// leads reports whether a call runs a transaction itself. Another crew of its process may run one
// on the key, too, under a lock that was lost.
func (c *call) leads() bool {
	return c.lead == nil && c.begun > 0 && c.broken < c.attempt && c.ended == 0 && !c.doubtful
}

// led returns when the transaction began that a call runs or shares.
func (c *call) led() int64 {
	if c.lead != nil {
		return c.lead.begun
	}
	return c.begun
}

// givenBack reports whether a mate ended in another way than its leader: its change came too
// late, or the transaction was rolled back for all to run alone. What was written is the
// leader's alone then.
func (c *call) givenBack() bool {
	return c.lead != nil && c.rolledBack() && (c.result == apart || c.result != c.lead.result)
}

// addAll adds a line to all legs of a call, and to those who share its transaction.
func (c *call) addAll(l line) {
	for _, of := range slices.Concat(c.legs, c.mates) {
		of.add(l)
	}
}

// of reports whether a call ended as one does that an event of its transaction tells of.
func (c *call) of(e *notify.Event) bool {
	if c.returned == 0 {
		return false
	}
	switch e.Outcome {
	case notify.OutcomeCommitted:
		return c.result == done
	case notify.OutcomeUnknown:
		return c.result == unknown
	case notify.OutcomeRefused:
		return c.named == e.ID
	}
	return c.result == "lost"
}

// beside reports whether another crew of the process had a transaction on the key while c had its
// own, under a lock that was lost: it can't be said then which of the two a mate had.
func (h *history) beside(c *call) bool {
	return slices.ContainsFunc(h.byKey[c.key], func(o *call) bool {
		return o != c && o.combines && o.worker == c.worker && o.lead == nil && o.begun > 0 && o.begun <= h.over(c) && h.over(o) >= c.begun
	})
}

// checkCount compares the Count of an event of c with those whose transaction it was: at
// least those of them who ended like that, and at most all who waited for the key in this
// process.
func (h *history) checkCount(t *report, c *call, e *notify.Event) {
	t.Helper()
	least, most := 1, 1
	if c.combines {
		least, most = 0, 0
		for _, m := range append([]*call{c}, c.mates...) {
			if m.of(e) && (m == c || !h.beside(c)) {
				least++
			}
		}
		for _, m := range h.byKey[c.key] {
			if m.combines && m.worker == c.worker && m.result != apart &&
				m.called <= c.caught && (m.returned == 0 || m.returned >= c.caught) {
				most++
			}
		}
	}
	if e.Count < least || e.Count > most {
		t.Errorf("an event counts %d, it is of at least %d and at most %d:\n%s", e.Count, least, most, c)
	}
}

// checkShared checks that an outcome that is unknown to those who share a transaction was
// told once, by the one that ran it.
func checkShared(t *report, c *call) {
	t.Helper()
	if c.result != unknown || c.unpublished {
		return
	}
	for lead := c.lead; lead != nil; lead = lead.next {
		if slices.ContainsFunc(lead.events, tellsUnknown) {
			return
		}
	}
	t.Errorf("nobody told the unknown outcome of a shared transaction:\n%s\n%s", c, c.lead)
}

// crews counts the transactions by how many calls shared them, and the failures of these that
// were told by what they count.
func (h *history) crews() (sizes, told map[int]int) {
	sizes, told = make(map[int]int), make(map[int]int)
	for _, c := range h.calls {
		if c.combines && c.lead == nil && c.wrote > 0 {
			sizes[1+len(c.mates)]++
		}
		for _, e := range failures(c.events) {
			if c.combines {
				told[e.Count]++
			}
		}
	}
	return sizes, told
}
