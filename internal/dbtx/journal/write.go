package journal

import (
	"slices"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/statement"
)

// A Write is a statement of a transaction that wrote.
type Write struct {
	How     statement.How
	Table   string           // "" if it is not known
	Calls   bool             // its text calls a function that may write other tables
	Deletes bool             // it is a DELETE, which may cascade, or may be one
	Rows    []*protected.Row // that it wrote, as far as is known
	Whole   bool             // it wrote no others
	Empty   bool             // it wrote no row, as the server reported
	Images  []Image          // of these rows
}

// mayBeTo reports whether the write may be to a table.
func (w *Write) mayBeTo(table string) bool {
	return w.Table == "" || catalogue.MayBeTable(w.Table, table)
}

// only reports whether the write is known to be to its table alone, but for triggers.
func (w *Write) only() bool { return w.Table != "" && !w.Calls }

// covers reports whether the database itself refuses the second such write.
func (w *Write) covers() bool { return w.How == statement.Plain || w.How == statement.Versioned }

// mayHaveWritten reports whether the write has changed a row, or may have.
func (w *Write) mayHaveWritten(r *protected.Row) bool {
	return slices.Contains(w.Rows, r) || !w.covers() && w.mayBeTo(r.Table) && (w.How == statement.Raw || len(w.Rows) == 0)
}

// mayHaveRenamed reports whether the write may have renamed or deleted the row: it
// altered rows of its table, and has no image of this one.
func (w *Write) mayHaveRenamed(r *protected.Row) bool {
	return w.How != statement.Plain && w.mayBeTo(r.Table) &&
		!slices.ContainsFunc(w.Images, func(i Image) bool { return i.Row == r })
}

// isMessage reports whether the write is of messages. Their table is Belay's own and has no
// triggers, and no message stands for another: a relay may have deleted its row, and a random id
// never meets another. So it says nothing of any row.
func (w *Write) isMessage() bool { return w.How == statement.Message }

// kept reports whether the write is of kept rows only: their tables are Belay's own, and
// have no triggers.
func (w *Write) kept() bool {
	return w.How == statement.Plain && w.Whole && !slices.ContainsFunc(w.Rows, func(r *protected.Row) bool { return !r.Kept })
}
