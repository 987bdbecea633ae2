package dbtx

import (
	"errors"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/journal"
	"github.com/belaygo/belay/internal/dbtx/models"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/gormfront"
)

// beforeInsert prepares an insert as beforeWrite prepares an update, and checks again the
// rows whose models hooks may have altered.
func beforeInsert(db *gorm.DB) { prepare(db, (*Tx).refresh) }

// inserted turns the error of a refused INSERT inside a guarded transaction into a
// *dbguard.ConflictError, and notes an INSERT that succeeded.
func inserted(db *gorm.DB) {
	t := txOf(db.Statement)
	if t == nil || db.DryRun {
		return
	}
	rows := t.rows.Among(gormfront.Given(db.Statement))
	how := insertKind(db.Statement)
	if db.Error == nil {
		fail.Point("dbtx/inserted")
		whole := how == journal.Plain && db.RowsAffected == rowsOf(db.Statement)
		t.noteInserted(db.Statement, how, whole, rows)
		if !whole && slices.ContainsFunc(rows, func(r *protected.Row) bool { return r.Kept }) {
			_ = db.AddError(errClaimAltered)
		}
		return
	}
	t.refused(db.Error)
	switch {
	case how != journal.Plain, errors.Is(db.Error, ErrPoisoned): // it was not sent
	case dialect.IsDuplicate(db.Error):
		c := t.judge.Duplicate(db.Statement, t.front.Translate(db.Error))
		t.abortedBy(c)
		db.Error = c
	case dialect.IsDeadlock(db.Error):
		t.lookAfterDeadlock(rows)
	}
}

// errClaimAltered is the error of a claim whose repeat the database would not refuse.
var errClaimAltered = errors.New("dbguard: a plugin or a trigger has altered the INSERT of a claim: only a plain one is refused if the row is there")

// noteInserted records the kind of an INSERT. One of a map without a model may have
// written any row, like raw SQL. If it has not made all its rows, which a trigger may
// prevent, its success does not show that they did not exist before.
func (t *Tx) noteInserted(stmt *gorm.Statement, how journal.How, whole bool, rows []*protected.Row) {
	if stmt.Schema == nil {
		return
	}
	w := journal.Write{How: how, Table: models.TableOf(stmt), Rows: rows, Empty: stmt.RowsAffected == 0}
	if how == journal.Plain && !whole {
		w.How = journal.Blind
	}
	if whole && len(rows) > 0 {
		w.Images = journal.Inserted(t.rows, stmt)
		w.Whole = len(rows) == models.Count(stmt)
		for _, r := range rows {
			t.judge.SeeBefore(r, protected.Reading{})
		}
	}
	t.journal.Classify(w)
}

// rowsOf returns how many rows an INSERT was to make. Later the length of a slice of maps
// does not show it, because gorm appends the returned rows.
func rowsOf(stmt *gorm.Statement) int64 {
	values, _ := stmt.Clauses["VALUES"].Expression.(clause.Values)
	return max(1, int64(len(values.Values))) // none: DEFAULT VALUES
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
