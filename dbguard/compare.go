package dbguard

import (
	"fmt"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// nextVersion adds the increment to an update, and the compare when the model
// carries a version.
type nextVersion struct{ field *schema.Field }

func (nextVersion) Name() string               { return "" }
func (nextVersion) Build(clause.Builder)       {}
func (nextVersion) MergeClause(*clause.Clause) {}

// expectedClause is where a statement keeps its expectedVersion, and nothing
// that is built into SQL.
const expectedClause = "belay:expected"

// expectedVersion notes what an update compares with, and the struct in which it
// was found. 0 = nothing.
type expectedVersion struct {
	field   *schema.Field
	version Version
	model   reflect.Value
	values  bool // the struct is not the model but the values
}

func (expectedVersion) Build(clause.Builder) {}

// ModifyStatement implements gorm.StatementModifier.
func (v nextVersion) ModifyStatement(stmt *gorm.Statement) {
	if stmt.SQL.Len() > 0 || !only(v.field, stmt) {
		return // raw SQL
	}
	if _, again := stmt.Clauses[expectedClause]; again { // an earlier use of the statement
		delete(stmt.Clauses, "SET")
		delete(stmt.Clauses, expectedClause)
	}
	// The assignments write to the model, too, even to its version.
	expected := v.loaded(stmt)
	restore := v.remember(stmt)
	ok := stmt.Error == nil && v.increment(stmt)
	restore()
	if !ok {
		return
	}
	where(stmt, expected)
	stmt.Clauses[expectedClause] = clause.Clause{Expression: expected}
}

// loaded returns the version that the updated struct carries: the model, or the
// values if they are a whole row.
func (v nextVersion) loaded(stmt *gorm.Statement) expectedVersion {
	model := indirectAll(stmt.Model)
	if k := model.Kind(); k == reflect.Slice || k == reflect.Array {
		for i := range model.Len() {
			if v.of(stmt, reflect.Indirect(model.Index(i))) != 0 {
				_ = stmt.AddError(fmt.Errorf("%w: update of several loaded rows of %s at once", ErrVersion, stmt.Table))
			}
		}
	}
	if version := v.of(stmt, model); version != 0 {
		if len(stmt.Schema.PrimaryFields) == 0 {
			_ = stmt.AddError(fmt.Errorf("%w: %s has no primary key", ErrVersion, stmt.Schema.Name))
		}
		return expectedVersion{v.field, version, model, false}
	}
	values := indirectAll(stmt.Dest)
	return expectedVersion{v.field, v.of(stmt, values), values, true}
}

// of returns the version that row carries, 0 if none. Without a primary key it
// was not loaded, and a compare would choose the rows.
func (v nextVersion) of(stmt *gorm.Statement, row reflect.Value) Version {
	if row.Kind() != reflect.Struct || row.Type() != stmt.Schema.ModelType {
		return 0
	}
	for _, f := range stmt.Schema.PrimaryFields {
		if _, unset := f.ValueOf(stmt.Context, row); unset {
			return 0
		}
	}
	return versionIn(stmt.Context, v.field, row)
}

// remember returns a function that gives the models the versions that they have
// now.
func (v nextVersion) remember(stmt *gorm.Statement) (restore func()) {
	var undo []func()
	eachModel(stmt, func(model reflect.Value) {
		was := versionIn(stmt.Context, v.field, model)
		undo = append(undo, func() {
			if versionIn(stmt.Context, v.field, model) != was {
				_ = stmt.AddError(v.field.Set(stmt.Context, model, was))
			}
		})
	})
	return func() {
		for _, f := range undo {
			f()
		}
	}
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
		if !strings.EqualFold(a.Column.Name, v.field.DBName) {
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

// compare is a condition that where adds.
type compare struct{ clause.Eq }

// group is a WHERE in parentheses: it may have an OR in it.
type group struct{ clause.Where }

func (g group) Build(b clause.Builder) {
	_ = b.WriteByte('(')
	g.Where.Build(b)
	_ = b.WriteByte(')')
}

// where adds what is expected to a statement's conditions, in place of what an
// earlier use added.
func where(stmt *gorm.Statement, expected expectedVersion) {
	c := stmt.Clauses["WHERE"]
	w, _ := c.Expression.(clause.Where)
	given := make([]clause.Expression, 0, len(w.Exprs))
	for _, e := range w.Exprs {
		if _, earlier := e.(compare); !earlier {
			given = append(given, e)
		}
	}
	if expected.version == 0 && len(given) == len(w.Exprs) {
		return
	}
	if expected.version != 0 && len(given) > 0 {
		given = []clause.Expression{group{clause.Where{Exprs: given}}}
	}
	given = append(given, expected.conditions(stmt)...)
	if len(given) == 0 {
		delete(stmt.Clauses, "WHERE")
		return
	}
	c.Name, c.Expression = "WHERE", clause.Where{Exprs: given}
	stmt.Clauses["WHERE"] = c
}

// conditions names the row: gorm does so only if the struct is the model.
func (e expectedVersion) conditions(stmt *gorm.Statement) (conds []clause.Expression) {
	if e.version == 0 {
		return nil
	}
	add := func(column string, value any) {
		conds = append(conds, compare{clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: column}, Value: value}})
	}
	if e.values {
		for _, f := range stmt.Schema.PrimaryFields {
			value, _ := f.ValueOf(stmt.Context, e.model)
			add(f.DBName, value)
		}
	}
	add(e.field.DBName, e.version)
	return conds
}
