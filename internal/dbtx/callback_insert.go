package dbtx

import (
	"errors"
	"slices"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/journal"
	"github.com/belaygo/belay/internal/dbtx/models"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/fail"
)

// beforeInsert does what beforeWrite does, and looks again at rows whose models hooks may
// have altered.
func beforeInsert(db *gorm.DB) { prepare(db, (*Tx).refresh) }

// inserted turns the error of a refused INSERT inside a guarded transaction into a
// *dbguard.ConflictError, and notes an INSERT that succeeded.
func inserted(db *gorm.DB) {
	t := txOf(db.Statement)
	if t == nil || db.DryRun {
		return
	}
	rows := t.rows.Among(db.Statement)
	how := insertKind(db.Statement)
	if db.Error == nil {
		fail.Point("dbtx/inserted")
		t.noteInserted(db.Statement, how, rows)
		if how != journal.Plain && slices.ContainsFunc(rows, func(r *protected.Row) bool { return r.Kept }) {
			_ = db.AddError(errClaimAltered)
		}
		return
	}
	t.refused(db.Error)
	switch {
	case how != journal.Plain, errors.Is(db.Error, ErrPoisoned): // it was not sent
	case dialect.IsDuplicate(db.Error):
		c := t.judge.Duplicate(db.Statement, t.translate(db.Error))
		t.abortedBy(c)
		db.Error = c
	case dialect.IsDeadlock(db.Error):
		t.lookAfterDeadlock(rows)
	}
}

// errClaimAltered is the error of a claim that would not be refused where it is there already.
var errClaimAltered = errors.New("dbguard: a plugin has altered the INSERT of a claim: only a plain one is refused if the row is there")

// noteInserted notes how an INSERT wrote. One of a map without a model may have written
// any row, like SQL of the caller's own.
func (t *Tx) noteInserted(stmt *gorm.Statement, how journal.How, rows []*protected.Row) {
	if stmt.Schema == nil {
		return
	}
	w := journal.Write{How: how, Table: catalogue.TableOf(stmt), Rows: rows}
	if how == journal.Plain && len(rows) > 0 {
		w.Images = journal.Inserted(t.rows, stmt)
		w.Whole = len(rows) == models.Count(stmt)
		for _, r := range rows {
			t.judge.SeeBefore(r, protected.Reading{})
		}
	}
	t.journal.Classify(w)
}

// insertKind returns Plain for an INSERT that only inserts, and is the only statement.
func insertKind(stmt *gorm.Statement) journal.How {
	if _, ok := stmt.Clauses["ON CONFLICT"]; ok {
		return journal.Blind
	}
	sql := dialect.Dialect{Name: stmt.DB.Name()}.Statements(stmt.SQL.String())
	if len(sql) != 1 {
		return journal.Raw
	}
	if words := sql[0].Words(); len(words) < 2 || words[0] != "INSERT" || words[1] != "INTO" {
		return journal.Blind // INSERT IGNORE, REPLACE
	}
	return journal.Plain
}
