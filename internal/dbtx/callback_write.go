package dbtx

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/journal"
	"github.com/belaygo/belay/internal/dbtx/models"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/fail"
)

// beforeWrite prepares the protected rows for a statement that gorm is about to send.
func beforeWrite(db *gorm.DB) { prepare(db, (*Tx).follow) }

func prepare(db *gorm.DB, protect func(*Tx, *gorm.Statement) error) {
	t := txOf(db.Statement)
	if t == nil {
		return
	}
	t.journal.Mark() // also for a statement that will not be sent: inserted and noted rely on it
	if db.Error != nil || db.DryRun {
		return
	}
	if table := catalogue.TableOf(db.Statement); table != "" {
		t.reader.Facts(table) // PostgreSQL reads nothing after an error
		t.rows.Resolve(table)
	}
	_ = db.AddError(protect(t, db.Statement))
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
		fail.Point("dbtx/updated")
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

// judged collects the evidence for the *dbguard.ConflictError that dbguard has made.
func judged(db *gorm.DB) {
	if _, unmet := db.Statement.Settings.LoadAndDelete(unmetSetting); !unmet {
		return
	}
	t := txOf(db.Statement)
	conflict, ok := errors.AsType[*dbguard.ConflictError](db.Error)
	if t == nil || !ok {
		return
	}
	expected, _ := models.ExpectedBy(db.Statement)
	t.judge.Stale(db.Statement, expected, conflict)
	if len(expected.Rows) > 1 {
		t.Poison(conflict) // the others have been written
	}
}
