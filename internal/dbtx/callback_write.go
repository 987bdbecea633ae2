package dbtx

import (
	"context"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/statement"
	"github.com/belaygo/belay/internal/gormfront"
	"github.com/belaygo/belay/internal/gormfront/models"
	"github.com/belaygo/belay/internal/rowversion"
)

// beforeWrite prepares the protected rows for a statement that gorm is about to send.
func beforeWrite(db *gorm.DB) {
	models.OmitUnread(db.Statement)
	prepare(db, (*Tx).follow)
}

func prepare(db *gorm.DB, protect func(*Tx, *statement.Write) error) {
	t := txOf(db.Statement)
	if t == nil {
		return
	}
	t.journal.Mark() // also for a statement that will not be sent: inserted and noted rely on it
	if db.Error != nil || db.DryRun {
		return
	}
	_ = db.AddError(t.before(gormfront.Given(db.Statement), protect))
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
	w := gormfront.Update(db.Statement)
	t.noteWritten(w, db.RowsAffected, db.Error)
	switch n := int64(len(w.Expected)); {
	case db.Error != nil:
	case n == 0, db.RowsAffected == n:
		expected, _ := models.ExpectedBy(db.Statement)
		t.undoInMemory(db.Statement, expected)
		_ = db.AddError(t.checkLimit(w))
	default:
		db.Statement.Settings.Store(unmetSetting, true)
	}
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

// judged collects the evidence for the *dbguard.ConflictError that dbguard has made.
func judged(db *gorm.DB) {
	if _, unmet := db.Statement.Settings.LoadAndDelete(unmetSetting); !unmet {
		return
	}
	if t := txOf(db.Statement); t != nil {
		t.judged(gormfront.Update(db.Statement), db.Error)
	}
}
