package dbguard

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
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
// A new row has version 1. Every update through gorm adds 1, whatever it sets
// and wherever it runs. When the model that is updated carries a version, that
// is, was loaded, the row is updated only if it still has that version; if not,
// and Install was called, the error is a *Conflict. 0 in memory means not
// loaded. After a successful update the version in memory is the new one.
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

// firstVersion gives new rows their version.
type firstVersion struct{ field *schema.Field }

func (firstVersion) Name() string               { return "" }
func (firstVersion) Build(clause.Builder)       {}
func (firstVersion) MergeClause(*clause.Clause) {}

// ModifyStatement implements gorm.StatementModifier.
func (v firstVersion) ModifyStatement(stmt *gorm.Statement) {
	eachModel(stmt, func(model reflect.Value) {
		if _, unset := v.field.ValueOf(stmt.Context, model); unset {
			_ = stmt.AddError(v.field.Set(stmt.Context, model, Version(1)))
		}
	})
}

// nextVersion adds the increment to an update, and the compare when the model
// carries a version.
type nextVersion struct{ field *schema.Field }

func (nextVersion) Name() string               { return "" }
func (nextVersion) Build(clause.Builder)       {}
func (nextVersion) MergeClause(*clause.Clause) {}

// expectedClause is where a statement keeps its expectedVersion, and nothing
// that is built into SQL.
const expectedClause = "belay:expected"

// expectedVersion notes what an update compares with, 0 = nothing.
type expectedVersion struct {
	field   *schema.Field
	version Version
}

func (expectedVersion) Build(clause.Builder) {}

// ModifyStatement implements gorm.StatementModifier.
func (v nextVersion) ModifyStatement(stmt *gorm.Statement) {
	if stmt.SQL.Len() > 0 {
		return // raw SQL
	}
	if _, again := stmt.Clauses[expectedClause]; again { // an earlier use of the statement
		delete(stmt.Clauses, "SET")
		delete(stmt.Clauses, expectedClause)
	}
	// Before the assignments are made: they write to the model, too.
	expected := v.loaded(stmt)
	if !v.increment(stmt) {
		return
	}
	if expected != 0 {
		where(stmt, clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: v.field.DBName}, Value: expected})
	}
	stmt.Clauses[expectedClause] = clause.Clause{Expression: expectedVersion{v.field, expected}}
}

// loaded returns the version that the updated model carries, 0 if none. Without
// a primary key it was not loaded, and a compare would choose the rows.
func (v nextVersion) loaded(stmt *gorm.Statement) Version {
	model := modelOf(stmt)
	if model.Kind() != reflect.Struct || model.Type() != stmt.Schema.ModelType {
		return 0
	}
	for _, f := range stmt.Schema.PrimaryFields {
		if _, unset := f.ValueOf(stmt.Context, model); unset {
			return 0
		}
	}
	value, _ := v.field.ValueOf(stmt.Context, model)
	version, _ := value.(Version)
	return version
}

// increment makes the SET clause, in place of gorm, with the version in it. It
// reports false if there is nothing to set.
func (v nextVersion) increment(stmt *gorm.Statement) bool {
	set, _ := stmt.Clauses["SET"].Expression.(clause.Set)
	if set == nil {
		if set = callbacks.ConvertToAssignments(stmt); len(set) == 0 {
			return false
		}
	}
	next := make(clause.Set, 0, len(set)+1)
	for _, a := range set {
		if a.Column.Name != v.field.DBName {
			next = append(next, a)
		}
	}
	next = append(next, clause.Assignment{
		Column: clause.Column{Name: v.field.DBName},
		Value:  clause.Expr{SQL: "? + 1", Vars: []any{clause.Column{Name: v.field.DBName}}},
	})
	stmt.AddClause(next)
	return true
}

// where adds cond to a statement's conditions, which may have an OR in them.
func where(stmt *gorm.Statement, cond clause.Expression) {
	if c, ok := stmt.Clauses["WHERE"]; ok {
		if w, ok := c.Expression.(clause.Where); ok && len(w.Exprs) > 1 {
			c.Expression = clause.Where{Exprs: []clause.Expression{clause.And(w.Exprs...)}}
			stmt.Clauses["WHERE"] = c
		}
	}
	stmt.AddClause(clause.Where{Exprs: []clause.Expression{cond}})
}

// modelOf returns the value of the statement's model.
func modelOf(stmt *gorm.Statement) reflect.Value {
	v := reflect.ValueOf(stmt.Model)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v
}

// eachModel calls f for every addressable struct among the statement's values.
func eachModel(stmt *gorm.Statement, f func(reflect.Value)) {
	switch v := stmt.ReflectValue; v.Kind() {
	case reflect.Struct:
		if v.CanAddr() && v.Type() == stmt.Schema.ModelType {
			f(v)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if e := reflect.Indirect(v.Index(i)); e.Kind() == reflect.Struct && e.CanAddr() && e.Type() == stmt.Schema.ModelType {
				f(e)
			}
		}
	}
}
