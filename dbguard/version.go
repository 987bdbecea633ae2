package dbguard

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/dbtx/models"
)

// Version is the type of a version column: the second layer of updates. A model
// has at most one.
//
//	type Stock struct {
//		ID      int64
//		Left    int
//		Version dbguard.Version
//	}
//
// A new row has version 1. Every update of the model through gorm adds 1,
// whatever it sets and wherever it runs. When the struct that is updated carries
// a primary key and a version, that is, was loaded, the row is updated only if
// it still has that version; if not, and Install was called, the error is a
// *Conflict. The same holds for several structs at once, all of which must be
// updated, and for deletes; a soft delete is an update. 0 in memory means not
// loaded. After a successful update the version in memory is the new one.
//
// An upsert raises the version of a row that it changes: gorm's Save of a parent, which
// upserts the foreign keys of its loaded children, leaves their versions alone. A child
// that Association.Append gives another parent has another version than in memory.
//
// Outside of a guarded transaction, and with gorm's SkipDefaultTransaction, an update of
// several structs writes those that match even if it returns a *Conflict.
//
// What would pass the versions by is refused with ErrVersion: an update of rows
// of which only some were loaded or one is given twice, and an upsert of all
// columns, as Save of a slice, or of a row that does not exist, would be.
type Version int64

// GormDBDataType implements gorm's migrator interface.
func (Version) GormDBDataType(*gorm.DB, *schema.Field) string { return "bigint NOT NULL DEFAULT 1" }

// CreateClauses implements gorm's schema.CreateClausesInterface.
func (Version) CreateClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{firstVersion{f}}
}

// UpdateClauses implements gorm's schema.UpdateClausesInterface.
func (Version) UpdateClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{nextVersion{f}}
}

// DeleteClauses implements gorm's schema.DeleteClausesInterface.
func (Version) DeleteClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{lastVersion{nextVersion{f}}}
}

// firstVersion gives new rows their version.
type firstVersion struct{ field *schema.Field }

func (firstVersion) Name() string               { return "" }
func (firstVersion) Build(clause.Builder)       {}
func (firstVersion) MergeClause(*clause.Clause) {}

// ModifyStatement implements gorm.StatementModifier.
func (v firstVersion) ModifyStatement(stmt *gorm.Statement) {
	if !only(v.field, stmt) {
		return
	}
	if !v.upsert(stmt) {
		_ = stmt.AddError(fmt.Errorf("%w: Save or upsert of all columns of %s, use Create or an update", ErrVersion, stmt.Table))
		return
	}
	models.Each(stmt, func(model reflect.Value) {
		if _, unset := v.field.ValueOf(stmt.Context, model); unset {
			_ = stmt.AddError(v.field.Set(stmt.Context, model, Version(1)))
		}
	})
}

// upsert has an upsert count as an update, too. It reports false if all columns
// are to be written: gorm's Save does that when its update matches no row, and
// for a slice.
func (v firstVersion) upsert(stmt *gorm.Statement) bool {
	c := stmt.Clauses["ON CONFLICT"]
	on, _ := c.Expression.(clause.OnConflict)
	if on.UpdateAll {
		return false
	}
	if len(on.DoUpdates) > 0 {
		on.DoUpdates = v.withNext(stmt, on.DoUpdates)
		c.Expression = on
		stmt.Clauses["ON CONFLICT"] = c
	}
	return true
}

// unscopedFirst does the same for an unscoped Create, for which gorm asks for no
// clauses, and sets stamps.
func unscopedFirst(db *gorm.DB) {
	s := db.Statement.Schema
	if s == nil || !db.Statement.Unscoped {
		return
	}
	if f := versionOf(s); f != nil {
		firstVersion{f}.ModifyStatement(db.Statement)
	}
	if f := stampOf(s); f != nil {
		newStamp{f}.ModifyStatement(db.Statement)
	}
}

// versionOf returns the version field of a schema, or nil.
func versionOf(s *schema.Schema) *schema.Field { return models.FieldOf[Version](s) }

// only reports whether f is the version field of the model. It refuses a model
// that has two; one that hides another, in an embedded struct, is alone.
func only(f *schema.Field, stmt *gorm.Statement) bool {
	switch {
	case versionOf(stmt.Schema) == f:
		return true
	case stmt.Schema.FieldsByDBName[f.DBName] != f:
		return false
	}
	_ = stmt.AddError(fmt.Errorf("%w: %s has two version fields", ErrVersion, stmt.Schema.Name))
	return false
}
