package chaos_test

import "strings"

// checkRows compares the rows with what calls returned. It returns how many rows should
// not be there, how many updates are missing, and how many requests were made.
func checkRows(t *report, r rows, h *history) (duplicates int, missing int64, requests int) {
	t.Helper()
	e := &effects{t: t, h: h}
	ordered, claimed := make(inserted), make(inserted)
	for _, o := range r.Orders {
		e.add(ordered, keyOf(orders, o.No), o.By)
	}
	for _, c := range r.Claims {
		e.add(claimed, keyOf(claims, c.No), c.By)
	}
	for _, c := range h.calls {
		switch {
		case strings.HasPrefix(c.key, string(orders)):
			e.insert(c, ordered)
		case strings.HasPrefix(c.key, string(claims)):
			e.insert(c, claimed)
		}
	}
	for _, c := range r.Counters {
		e.counter(keyOf(counters, c.ID), c.N, int64(c.Version))
	}
	for _, s := range r.Stamped {
		e.counter(keyOf(stamped, s.ID), s.N, int64(s.Version))
	}
	for i, half := range r.Halves {
		e.counter(keyOf(pairs, half.ID/2), half.N, int64(half.Version))
		if i%2 == 1 && r.Halves[i-1].N != half.N {
			t.Errorf("one write of two: half %d is %d, half %d is %d", r.Halves[i-1].ID, r.Halves[i-1].N, half.ID, half.N)
		}
	}
	e.sales(r.Items, r.Sales)
	e.stocks(r.Stocks, r.Receipts)
	e.transfers(r.Accounts, r.Transfers)
	e.depots(r.Depots, r.Parcels)
	requests = e.requests(r.Tallies, r.Services)
	for _, s := range r.Spoils {
		t.Errorf("the write of a savepoint that was rolled back is there, of %s", s.By)
	}
	return e.duplicates, e.missing, requests
}

// effects compares rows with results.
type effects struct {
	t          *report
	h          *history
	duplicates int
	missing    int64
}

// inserted is who made the row of a key.
type inserted map[string]string

func (e *effects) add(rows inserted, key, by string) {
	if _, twice := rows[key]; twice {
		e.duplicates++
		e.t.Errorf("%s is there twice", key)
	}
	rows[key] = by
}

func (e *effects) insert(c *call, rows inserted) {
	mine := rows[c.key] == c.name
	switch {
	case c.result == done && !mine:
		e.missing++
		e.t.Errorf("the row of an insert that was done is not there, but one of %q:\n%s", rows[c.key], c)
	case mine && c.rolledBack():
		e.duplicates++
		e.t.Errorf("the row of an insert that was not done is there:\n%s", c)
	case c.result == duplicate && rows[c.key] == "":
		e.t.Errorf("a repeat of an insert of which there is no row:\n%s", c)
	}
}

// rolledBack reports whether the call said that it had changed nothing.
func (c *call) rolledBack() bool { return c.returned > 0 && c.result != done && c.result != unknown }

// counter checks that a row was updated once by each call that was done.
func (e *effects) counter(key string, n, version int64) {
	told, open := e.h.told(key), e.h.undecided(key)
	if n < told || n > told+open {
		e.t.Errorf("%s is %d after %d updates that were done and %d that may have been", key, n, told, open)
		e.missing += max(0, told-n)
	}
	if version != n+1 {
		e.t.Errorf("%s is %d at version %d", key, n, version)
	}
}

// sales checks that each sale and the count of its item were written together.
func (e *effects) sales(counts []Item, sales []Sale) {
	made := make(map[string]Sale)
	nth := make(map[Sale]bool) // of which only Item and N are set
	total := make(map[int64]int64)
	for _, s := range sales {
		made[s.No] = s
		total[s.Item]++
		place := Sale{Item: s.Item, N: s.N}
		if nth[place] {
			e.duplicates++
			e.t.Errorf("two sales are the %d. of item %d", s.N, s.Item)
		}
		nth[place] = true
	}
	for _, i := range counts {
		e.counter(keyOf(items, i.ID), i.N, int64(i.Version))
		if total[i.ID] != i.N {
			e.t.Errorf("one write of two: item %d is %d after %d sales", i.ID, i.N, total[i.ID])
		}
	}
	for _, c := range e.h.calls {
		if !strings.HasPrefix(c.key, string(items)) {
			continue
		}
		s, there := made[c.name]
		switch {
		case there && keyOf(items, s.Item) != c.key:
			e.t.Errorf("the sale is one of item %d:\n%s", s.Item, c)
		case there && c.rolledBack():
			e.duplicates++
			e.t.Errorf("the sale of a call that was not done is there:\n%s", c)
		case !there && c.result == done:
			e.missing++
			e.t.Errorf("the sale of a call that was done is not there:\n%s", c)
		}
	}
}
