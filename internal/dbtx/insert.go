package dbtx

import (
	"errors"
	"slices"

	"github.com/belaygo/belay/internal/dbtx/journal"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/statement"
	"github.com/belaygo/belay/internal/fail"
)

// errClaimAltered is the error of a claim whose repeat the database would not refuse.
var errClaimAltered = errors.New("dbguard: a plugin or a trigger has altered the INSERT of a claim: only a plain one is refused if the row is there")

// inserted notes an INSERT that has succeeded.
func (t *Tx) inserted(w *statement.Write, affected int64) error {
	fail.Point("dbtx/inserted")
	rows := t.rows.Among(w)
	whole := w.How == statement.Plain && affected == w.Values
	t.noteInserted(w, whole, affected, rows)
	if !whole && slices.ContainsFunc(rows, func(r *protected.Row) bool { return r.Kept }) {
		return errClaimAltered
	}
	return nil
}

// noteInserted records the kind of an INSERT. One of a map without a model may have
// written any row, like raw SQL. If it has not made all its rows, which a trigger may
// prevent, its success does not show that they did not exist before.
func (t *Tx) noteInserted(of *statement.Write, whole bool, affected int64, rows []*protected.Row) {
	if of.Model == nil {
		return
	}
	w := journal.Write{How: of.How, Table: of.Table, Rows: rows, Empty: affected == 0}
	if of.How == statement.Plain && !whole {
		w.How = statement.Blind
	}
	if whole && len(rows) > 0 {
		w.Images = journal.Inserted(&t.rows, of)
		w.Whole = len(rows) == of.Given
		for _, r := range rows {
			t.judge.SeeBefore(r, protected.Reading{})
		}
	}
	t.journal.Classify(w)
}
