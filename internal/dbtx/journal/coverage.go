package journal

import (
	"maps"
	"slices"

	"github.com/belaygo/belay/internal/dbtx/protected"
)

// Coverage describes how the database protects the writes of a transaction without a
// lock.
type Coverage struct {
	// Wrote is set if a statement wrote anything but messages, or called a function that may
	// have.
	Wrote bool
	// Covered: the transaction wrote at least one row that a key protects. It wrote
	// every such row by a plain insert, or by a versioned update or delete that matched
	// it. Of two such transactions the database refuses one.
	Covered bool
	// Keys are the keys that protect such a row.
	Keys []string
	// Uncovered names the tables with writes that the database would not refuse:
	// upserts (gorm saves associations by them), SQL of the caller's own, and
	// updates and deletes without a loaded version. "?" is a table that is not
	// known.
	Uncovered []string
}

// Coverage returns how far the writes so far are covered, where the keys protect rows.
// Writes that a rollback to a savepoint has undone do not count.
func (j *Journal) Coverage(rows []*protected.Row) Coverage {
	j.mu.Lock()
	defer j.mu.Unlock()
	writes, message := j.writes, func(w Write) bool { return w.isMessage() }
	if slices.ContainsFunc(writes, message) {
		writes = slices.DeleteFunc(slices.Clone(writes), message)
	}
	if len(writes) == 0 {
		return Coverage{Wrote: j.called}
	}
	c := Coverage{Wrote: true}
	covered := make(map[*protected.Row]bool)
	for _, w := range writes {
		if w.covers() {
			for _, r := range w.Rows {
				covered[r] = true
				if !slices.Contains(c.Keys, r.Key) {
					c.Keys = append(c.Keys, r.Key)
				}
			}
		}
	}
	open := func(r *protected.Row) bool { return !covered[r] }
	c.Covered = len(covered) > 0 && (!j.called || !slices.ContainsFunc(rows, open))
	tables := make(map[string]bool)
	for _, w := range writes {
		if w.covers() {
			continue
		}
		name := w.Table
		if name == "" {
			name = "?"
		}
		tables[name] = true
		if slices.ContainsFunc(rows, func(r *protected.Row) bool { return open(r) && w.mayBeTo(r.Table) }) {
			c.Covered = false
		}
	}
	if len(tables) > 0 {
		c.Uncovered = slices.Sorted(maps.Keys(tables))
	}
	return c
}
