package dbguard

import (
	"maps"
	"slices"
)

// Coverage tells what stands between the writes of a transaction and another
// writer when there is no lock.
type Coverage struct {
	// Wrote: a statement wrote something, whatever it was.
	Wrote bool
	// Covered: the transaction wrote at least one row that the key protects, and
	// every such row by a plain insert, or by a versioned update or delete that
	// matched it. Of two such transactions the database refuses one.
	Covered bool
	// Uncovered names the tables with writes that the database would not refuse:
	// upserts (gorm saves associations by them), SQL of the caller's own, and
	// updates and deletes without a loaded version. "?" is a table that could not
	// be told.
	Uncovered []string
}

// Coverage tells how far the writes so far are covered. What a savepoint's
// rollback has undone does not count.
func (t *Tx) Coverage() Coverage {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.writes) == 0 {
		return Coverage{}
	}
	c := Coverage{Wrote: true}
	covered := make(map[*protectedRow]bool)
	for _, w := range t.writes {
		if w.covers() {
			for _, r := range w.rows {
				covered[r] = true
			}
		}
	}
	c.Covered = len(covered) > 0
	tables := make(map[string]bool)
	for _, w := range t.writes {
		if w.covers() {
			continue
		}
		name := w.table
		if name == "" {
			name = "?"
		}
		tables[name] = true
		if t.mayHaveHit(w, covered) {
			c.Covered = false
		}
	}
	c.Uncovered = slices.Sorted(maps.Keys(tables))
	return c
}

// mayHaveHit reports whether a write that covers nothing may have written a row
// that the key protects and nothing else covers.
func (t *Tx) mayHaveHit(w write, covered map[*protectedRow]bool) bool {
	if w.tagged && t.key != "" {
		return true // which rows of the table are the key's is known of those only that gorm wrote
	}
	return slices.ContainsFunc(t.protected.all, func(r *protectedRow) bool {
		return !covered[r] && (w.table == "" || sameTable(w.table, r.table))
	})
}

// wrote reports whether the transaction has written a row itself, or may have,
// so that a conflict of this kind on it says nothing about others.
func (t *Tx) wrote(r *protectedRow, kind Kind) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wroteEarlier(r, kind) ||
		slices.ContainsFunc(t.writes[t.written.n:], func(w write) bool { return w.mayHaveWritten(r, kind) })
}

// wroteEarlier reports that of the statements before the marked one. The caller holds
// t.mu.
func (t *Tx) wroteEarlier(r *protectedRow, kind Kind) bool {
	t.written.extend(t.writes[:min(t.marked, len(t.writes))])
	return t.written.mayHave(r, kind)
}

// writtenRows are the rows that the first n writes of a transaction have written, or
// may have.
type writtenRows struct {
	n    int
	rows map[*protectedRow]bool // false = only by upserts, which may have left it alone
	wide []write                // that may have written any row of their tables
}

func (k *writtenRows) extend(writes []write) {
	for ; k.n < len(writes); k.n++ {
		w := writes[k.n]
		for _, r := range w.rows {
			if k.rows == nil {
				k.rows = make(map[*protectedRow]bool)
			}
			k.rows[r] = k.rows[r] || w.how != upsert
		}
		if w.how == raw || (w.how == upsert || w.how == blind) && len(w.rows) == 0 {
			k.wide = append(k.wide, w)
		}
	}
}

func (k *writtenRows) mayHave(r *protectedRow, kind Kind) bool {
	if certain, ok := k.rows[r]; ok && (certain || kind == Stale) {
		return true
	}
	return slices.ContainsFunc(k.wide, func(w write) bool { return w.mayHaveWritten(r, kind) })
}

// mayHaveWritten reports whether the write has changed a row, or may have, as to
// a conflict of this kind.
func (w *write) mayHaveWritten(r *protectedRow, kind Kind) bool {
	if slices.Contains(w.rows, r) {
		return w.how != upsert || kind == Stale // an upsert may have left it alone
	}
	in := w.table == "" || sameTable(w.table, r.table)
	switch w.how {
	case raw:
		return in
	case upsert, blind:
		return in && kind == Stale && len(w.rows) == 0
	case plain, versioned:
	}
	return false
}
