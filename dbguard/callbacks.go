package dbguard

import (
	"context"
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/models"
)

// beforeInsert prepares the protected rows for an INSERT that gorm is about to send.
func beforeInsert(db *gorm.DB) {
	unscopedFirst(db)
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
	t.mark() // also for a statement that will not be sent: inserted and written rely on it
	if db.Error != nil || db.DryRun {
		return
	}
	if table := catalogue.TableOf(db.Statement); table != "" {
		t.factsOf(table) // PostgreSQL reads nothing after an error
		t.mu.Lock()
		shapes := t.protected.shapes
		t.mu.Unlock()
		for _, shape := range shapes {
			t.sameTable(shape.table, table)
		}
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
	rows := t.protectedAmong(db.Statement)
	how := insertKind(db.Statement)
	if db.Error == nil {
		t.noteInserted(db.Statement, how, rows)
		return
	}
	t.refused(db.Error)
	switch {
	case how != plain, errors.Is(db.Error, ErrPoisoned): // it was not sent
	case dialect.IsDuplicate(db.Error):
		c := &Conflict{Kind: Duplicate, Table: catalogue.TableOf(db.Statement), err: t.translate(db.Error), suspects: t.suspectsOfInsert(db.Statement)}
		c.ownIndex = t.firedOwnIndex(c, models.Count(db.Statement))
		t.judge(c)
		t.abortedBy(c)
		db.Error = c
	case dialect.IsDeadlock(db.Error):
		t.lookAfterDeadlock(rows)
	}
}

// noteInserted notes how an INSERT wrote. One of a map without a model may have written
// any row, like SQL of the caller's own.
func (t *Tx) noteInserted(stmt *gorm.Statement, how how, rows []*protectedRow) {
	if stmt.Schema == nil {
		return
	}
	w := write{how: how, table: catalogue.TableOf(stmt), rows: rows}
	if how == plain && len(rows) > 0 {
		w.images = t.imagesOfInsert(stmt)
		w.whole = len(rows) == models.Count(stmt)
		for _, r := range rows {
			t.seeBefore(r, reading{})
		}
	}
	t.classify(w)
}

// insertKind returns plain unless an INSERT does more than insert, or is not alone.
func insertKind(stmt *gorm.Statement) how {
	if _, ok := stmt.Clauses["ON CONFLICT"]; ok {
		return blind
	}
	sql := dialect.Dialect{Name: stmt.DB.Name()}.Statements(stmt.SQL.String())
	if len(sql) != 1 {
		return raw
	}
	if words := sql[0].Words(); len(words) < 2 || words[0] != "INSERT" || words[1] != "INTO" {
		return blind // INSERT IGNORE, REPLACE
	}
	return plain
}

// written turns a versioned UPDATE or DELETE that matched fewer rows than it was
// given into a *Conflict. After one that matched all, the models in memory get
// their rows' new versions.
func written(db *gorm.DB) {
	t := txOf(db.Statement)
	expected, ok := db.Statement.Clauses[expectedClause].Expression.(expectedVersion)
	if db.DryRun || t == nil && !ok {
		return
	}
	var rows []*protectedRow
	if t != nil {
		rows = t.protectedAmong(db.Statement)
	}
	matched := db.Error == nil && db.RowsAffected >= int64(len(expected.rows))
	if t != nil {
		t.noteWritten(db, expected, rows)
	}
	switch {
	case matched:
		bump(db, expected, t)
		return
	case len(expected.rows) == 0, db.Error != nil:
		return
	}
	c := &Conflict{Kind: Stale, Table: catalogue.TableOf(db.Statement)}
	c.Evidence.Version = expected.rows[0].version
	if t != nil {
		c.suspects = t.suspectsOfUpdate(db.Statement, expected)
		t.judge(c)
		if len(expected.rows) > 1 {
			t.poisonWith(c) // the others have been written
		}
	}
	db.Error = c
}

// noteWritten notes how an UPDATE or DELETE wrote, and what it proves of its rows.
func (t *Tx) noteWritten(db *gorm.DB, expected expectedVersion, rows []*protectedRow) {
	switch {
	case db.Error != nil:
		t.refused(db.Error)
		return
	case db.RowsAffected == 0:
		t.forget()
		return
	}
	w := write{how: blind, table: catalogue.TableOf(db.Statement), rows: rows}
	w.deletes = !updates(db.Statement)
	if n := int64(len(expected.rows)); n > 0 && db.RowsAffected == n {
		w.how = versioned
		w.images = t.imagesOfUpdate(db.Statement, expected)
		for _, img := range w.images {
			t.seeBefore(img.row, reading{found: true, version: img.from})
		}
	}
	t.classify(w)
}

// bump sets the versions and stamps in memory: in a guarded transaction, t, until a
// rollback.
func bump(db *gorm.DB, expected expectedVersion, t *Tx) {
	if !updates(db.Statement) {
		return // deleted for good
	}
	ctx := context.WithoutCancel(db.Statement.Context)
	set := func(r loadedRow, f *schema.Field, was, now any) {
		_ = db.AddError(f.Set(ctx, r.model, now))
		if t != nil {
			t.OnRollback(func() { _ = f.Set(ctx, r.model, was) })
		}
	}
	stamp := stampSet(db.Statement)
	for _, r := range expected.rows {
		if !r.model.CanAddr() {
			continue
		}
		set(r, expected.field, r.version, r.version+1)
		if stamp != 0 {
			set(r, stampOf(db.Statement.Schema), stampIn(ctx, db.Statement.Schema, r.model), stamp)
		}
	}
}

// updates reports whether the statement is an UPDATE, as a soft delete is.
func updates(stmt *gorm.Statement) bool {
	_, ok := stmt.Clauses["SET"]
	return ok
}
