package dbtx

import (
	"errors"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/statement"
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
	w := gormfront.Insert(db.Statement)
	if db.Error == nil {
		if w.Model != nil && t.rows.Any() {
			w.Images = gormfront.Images(db.Statement)
		}
		_ = db.AddError(t.inserted(w, db.RowsAffected))
		return
	}
	t.refused(db.Error)
	switch {
	case w.How != statement.Plain, errors.Is(db.Error, ErrPoisoned): // it was not sent
	case dialect.IsDuplicate(db.Error), errors.Is(db.Error, gorm.ErrDuplicatedKey):
		c := t.judge.Duplicate(w, t.front.Translate(db.Error))
		t.abortedBy(c)
		db.Error = c
	case dialect.IsDeadlock(db.Error):
		t.lookAfterDeadlock(t.rows.Among(w))
	}
}
