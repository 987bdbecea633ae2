package dbtx

import (
	"math"
	"slices"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/protected"
)

// factsOf returns the facts of a table, and remembers them. If they can't be read, it
// returns those from which least follows.
func (t *Tx) factsOf(table string) catalogue.Facts {
	known, err := remembered(t, &t.plugin.facts, table, catalogue.FactsOf)
	if err == nil {
		return known
	}
	known = catalogue.Facts{Transactional: true, Triggers: true, Alters: true, Cascades: true}
	if dialect.FromServer(err) && !dialect.IsAborted(err) { // it knows no such catalogue
		t.plugin.facts.Store(table, known)
	}
	return known
}

// touched reports whether the first n writes of the transaction may have changed a row. A
// write to another row may do so by a trigger or a cascade. MySQL and MariaDB do not
// show all users the triggers.
func (t *Tx) touched(r *protected.Row, n int) bool {
	t.mu.Lock()
	called, writes := t.called, t.writes[:min(n, len(t.writes))]
	t.mu.Unlock()
	if called || len(writes) > 0 && t.dialect.Name == "mysql" {
		return true
	}
	for i := range writes {
		w := &writes[i]
		if w.how == raw || w.mayBeTo(r.Table) && (!w.whole || slices.Contains(w.rows, r)) ||
			t.factsOf(w.table).Triggers || w.deletes && t.factsOf(r.Table).Cascades {
			return true
		}
	}
	return false
}

// clean reports whether the transaction can't have written a row, so that it reads what
// others have committed.
func (t *Tx) clean(r *protected.Row) bool { return !t.touched(r, math.MaxInt) }
