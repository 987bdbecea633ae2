package dbtx

import (
	"math"
	"slices"

	"github.com/belaygo/belay/internal/dbtx/protected"
)

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
			t.reader.Facts(w.table).Triggers || w.deletes && t.reader.Facts(r.Table).Cascades {
			return true
		}
	}
	return false
}

// clean reports whether the transaction can't have written a row, so that it reads what
// others have committed.
func (t *Tx) clean(r *protected.Row) bool { return !t.touched(r, math.MaxInt) }
