package dbtx

import (
	"maps"
	"slices"

	"github.com/belaygo/belay/internal/dbtx/protected"
)

// Coverage is what stands between the writes of a transaction and another writer when
// there is no lock.
type Coverage struct {
	// Wrote: a statement wrote something, whatever it was.
	Wrote bool
	// Covered: the transaction wrote at least one row that the key protects. It wrote
	// every such row by a plain insert, or by a versioned update or delete that matched
	// it. Of two such transactions the database refuses one.
	Covered bool
	// Uncovered names the tables with writes that the database would not refuse:
	// upserts (gorm saves associations by them), SQL of the caller's own, and
	// updates and deletes without a loaded version. "?" is a table that is not
	// known.
	Uncovered []string
}

// Coverage returns how far the writes so far are covered. Writes that a rollback to a
// savepoint has undone do not count.
func (t *Tx) Coverage() Coverage {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.writes) == 0 {
		return Coverage{}
	}
	c := Coverage{Wrote: true}
	covered := make(map[*protected.Row]bool)
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
func (t *Tx) mayHaveHit(w write, covered map[*protected.Row]bool) bool {
	return slices.ContainsFunc(t.rows.All(), func(r *protected.Row) bool {
		return !covered[r] && w.mayBeTo(r.Table)
	})
}
