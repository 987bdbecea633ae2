package dbtx

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/journal"
	"github.com/belaygo/belay/internal/dbtx/models"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/statement"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/gormfront"
	"github.com/belaygo/belay/internal/rowversion"
)

// beforeWrite prepares the protected rows for a statement that gorm is about to send.
func beforeWrite(db *gorm.DB) { prepare(db, (*Tx).follow) }

func prepare(db *gorm.DB, protect func(*Tx, *statement.Write) error) {
	t := txOf(db.Statement)
	if t == nil {
		return
	}
	t.journal.Mark() // also for a statement that will not be sent: inserted and noted rely on it
	if db.Error != nil || db.DryRun {
		return
	}
	w := gormfront.Given(db.Statement)
	if w.Table != "" {
		t.reader.Facts(w.Table) // PostgreSQL reads nothing after an error
		t.rows.Resolve(w.Table)
	}
	_ = db.AddError(protect(t, w))
}

// unmetSetting is where a statement keeps between noted and judged that it matched fewer
// rows than it was given, or more.
const unmetSetting = "belay:unmet"

// noted notes how an UPDATE or DELETE wrote.
func noted(db *gorm.DB) {
	t := txOf(db.Statement)
	if t == nil || db.DryRun {
		return
	}
	expected, _ := models.ExpectedBy(db.Statement)
	t.noteWritten(db, expected, t.rows.Among(gormfront.Given(db.Statement)))
	switch n := int64(len(expected.Rows)); {
	case db.Error != nil:
	case n == 0, db.RowsAffected == n:
		t.undoInMemory(db.Statement, expected)
		if err := t.checkLimit(db.Statement, expected); err != nil {
			_ = db.AddError(err)
			t.Poison(err)
		}
	default:
		db.Statement.Settings.Store(unmetSetting, true)
	}
}

// checkLimit returns an error if a version was raised that is at the limit of its column:
// without strict mode MySQL leaves it there, and two writers would write one version.
func (t *Tx) checkLimit(stmt *gorm.Statement, expected models.Expected) error {
	var highest int64
	for _, r := range expected.Rows {
		highest = max(highest, r.Version+expected.Steps)
	}
	if highest <= catalogue.SmallestLimit || !models.IsUpdate(stmt) {
		return nil
	}
	column, err := t.reader.Column(models.TableOf(stmt), expected.Field.DBName)
	if err != nil {
		return err
	}
	if limit, ok := column.Limit(t.dialect.Name); ok && highest > limit {
		return fmt.Errorf("%w: the version column %s.%s is %s, which ends at %d", rowversion.ErrVersion,
			stmt.Table, expected.Field.DBName, column.Kind, limit)
	}
	return nil
}

// noteWritten records the kind of an UPDATE or DELETE, and its proofs about its rows.
func (t *Tx) noteWritten(db *gorm.DB, expected models.Expected, rows []*protected.Row) {
	switch {
	case db.Error != nil:
		t.refused(db.Error)
		return
	case db.RowsAffected == 0:
		t.journal.Forget()
		return
	}
	w := journal.Write{How: journal.Blind, Table: models.TableOf(db.Statement), Rows: rows}
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
	stamped := models.Assigned[rowversion.Stamp](stmt) != 0
	for _, r := range expected.Rows {
		if !r.Model.CanAddr() {
			continue
		}
		t.OnRollback(func() { _ = expected.Field.Set(ctx, r.Model, rowversion.Version(r.Version)) })
		if stamped {
			f := models.FieldOf[rowversion.Stamp](stmt.Schema)
			was := models.In[rowversion.Stamp](ctx, f, r.Model)
			t.OnRollback(func() { _ = f.Set(ctx, r.Model, was) })
		}
	}
}

// judged collects the evidence for the *dbguard.ConflictError that dbguard has made. If more
// rows were written than the statement was given, nothing of the transaction may remain.
func judged(db *gorm.DB) {
	if _, unmet := db.Statement.Settings.LoadAndDelete(unmetSetting); !unmet {
		return
	}
	t := txOf(db.Statement)
	c, ok := errors.AsType[*conflict.Error](db.Error)
	switch {
	case t == nil:
		return
	case !ok:
		if errors.Is(db.Error, conflict.ErrUnprotectable) {
			t.Poison(db.Error)
		}
		return
	}
	expected, _ := models.ExpectedBy(db.Statement)
	t.judge.Stale(db.Statement, expected, c)
	if len(expected.Rows) > 1 {
		t.Poison(c) // the others have been written
	}
}
