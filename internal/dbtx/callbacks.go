package dbtx

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/journal"
	"github.com/belaygo/belay/internal/dbtx/models"
	"github.com/belaygo/belay/internal/dbtx/protected"
)

// beforeInsert prepares the protected rows for an INSERT that gorm is about to send.
func beforeInsert(db *gorm.DB) {
	before(db, func(t *Tx) error {
		if err := t.refresh(db.Statement); err != nil {
			return err
		}
		return t.follow(db.Statement)
	})
}

// beforeWrite does the same before an update or a delete.
func beforeWrite(db *gorm.DB) {
	before(db, func(t *Tx) error { return t.follow(db.Statement) })
}

func before(db *gorm.DB, look func(*Tx) error) {
	t := txOf(db.Statement)
	if t == nil {
		return
	}
	t.journal.Mark() // also for a statement that will not be sent: inserted and written rely on it
	if db.Error != nil || db.DryRun {
		return
	}
	if table := catalogue.TableOf(db.Statement); table != "" {
		t.reader.Facts(table) // PostgreSQL reads nothing after an error
		t.rows.Resolve(table)
	}
	if err := look(t); err != nil {
		_ = db.AddError(err)
	}
}

// inserted turns a refused INSERT inside a guarded transaction into a
// *Conflict, and notes one that succeeded.
func inserted(db *gorm.DB) {
	t := txOf(db.Statement)
	if t == nil || db.DryRun {
		return
	}
	rows := t.rows.Among(db.Statement)
	how := insertKind(db.Statement)
	if db.Error == nil {
		t.noteInserted(db.Statement, how, rows)
		return
	}
	t.refused(db.Error)
	switch {
	case how != journal.Plain, errors.Is(db.Error, dbguard.ErrPoisoned): // it was not sent
	case dialect.IsDuplicate(db.Error):
		c := t.judge.Duplicate(db.Statement, t.translate(db.Error))
		t.abortedBy(c)
		db.Error = c
	case dialect.IsDeadlock(db.Error):
		t.lookAfterDeadlock(rows)
	}
}

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

// insertKind returns plain unless an INSERT does more than insert, or is not alone.
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

// unmetSetting is where a statement keeps between noted and judged that it matched fewer
// rows than it was given.
const unmetSetting = "belay:unmet"

// noted notes how an UPDATE or DELETE wrote.
func noted(db *gorm.DB) {
	t := txOf(db.Statement)
	if t == nil || db.DryRun {
		return
	}
	expected, _ := models.ExpectedBy(db.Statement)
	t.noteWritten(db, expected, t.rows.Among(db.Statement))
	switch {
	case db.Error != nil:
	case db.RowsAffected >= int64(len(expected.Rows)):
		t.undoInMemory(db.Statement, expected)
	default:
		db.Statement.Settings.Store(unmetSetting, true)
	}
}

// noteWritten notes how an UPDATE or DELETE wrote, and what it proves of its rows.
func (t *Tx) noteWritten(db *gorm.DB, expected models.Expected, rows []*protected.Row) {
	switch {
	case db.Error != nil:
		t.refused(db.Error)
		return
	case db.RowsAffected == 0:
		t.journal.Forget()
		return
	}
	w := journal.Write{How: journal.Blind, Table: catalogue.TableOf(db.Statement), Rows: rows}
	w.Deletes = !models.IsUpdate(db.Statement)
	if n := int64(len(expected.Rows)); n > 0 && db.RowsAffected == n {
		w.How = journal.Versioned
		w.Images = journal.Updated(t.rows, db.Statement, expected)
		for _, img := range w.Images {
			t.judge.SeeBefore(img.Row, protected.Reading{Found: true, Version: img.From})
		}
	}
	t.journal.Classify(w)
}

// undoInMemory gives the models of an update their versions and stamps back at a
// rollback.
func (t *Tx) undoInMemory(stmt *gorm.Statement, expected models.Expected) {
	if len(expected.Rows) == 0 || !models.IsUpdate(stmt) {
		return // nothing was loaded, or it is deleted for good
	}
	ctx := context.WithoutCancel(stmt.Context)
	stamped := models.Assigned[dbguard.Stamp](stmt) != 0
	for _, r := range expected.Rows {
		if !r.Model.CanAddr() {
			continue
		}
		t.OnRollback(func() { _ = expected.Field.Set(ctx, r.Model, dbguard.Version(r.Version)) })
		if stamped {
			f := models.FieldOf[dbguard.Stamp](stmt.Schema)
			was := models.In[dbguard.Stamp](ctx, f, r.Model)
			t.OnRollback(func() { _ = f.Set(ctx, r.Model, was) })
		}
	}
}

// judged collects the evidence for the *Conflict that written has made.
func judged(db *gorm.DB) {
	if _, unmet := db.Statement.Settings.LoadAndDelete(unmetSetting); !unmet {
		return
	}
	t := txOf(db.Statement)
	conflict, ok := errors.AsType[*dbguard.Conflict](db.Error)
	if t == nil || !ok {
		return
	}
	expected, _ := models.ExpectedBy(db.Statement)
	t.judge.Stale(db.Statement, expected, conflict)
	if len(expected.Rows) > 1 {
		t.poisonWith(conflict) // the others have been written
	}
}
