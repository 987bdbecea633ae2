package dbguard

import (
	"fmt"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/dbtx/models"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
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

// expectedVersion notes what a statement compares with, and the structs in which
// it was found. No rows = nothing.
type expectedVersion struct {
	field  *schema.Field
	rows   []loadedRow
	values bool // the struct is not the model but the values
}

// A loadedRow is a struct that has been read from the database.
type loadedRow struct {
	model   reflect.Value
	version Version
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

// loaded returns the versions that the updated structs carry: the models, or the
// values if they are a whole row.
func (v nextVersion) loaded(stmt *gorm.Statement) expectedVersion {
	model := models.Indirect(stmt.Model)
	expected := v.among(stmt, model)
	if k := model.Kind(); len(expected.rows) == 0 && k != reflect.Slice && k != reflect.Array {
		expected.values = true
		expected.add(stmt, v, models.Indirect(stmt.Dest))
	}
	return expected
}

// among returns the versions in a struct or in several.
func (v nextVersion) among(stmt *gorm.Statement, given reflect.Value) expectedVersion {
	expected, n := expectedVersion{field: v.field}, 1
	if k := given.Kind(); k == reflect.Slice || k == reflect.Array {
		n = given.Len()
		for i := range n {
			expected.add(stmt, v, reflect.Indirect(given.Index(i)))
		}
	} else {
		expected.add(stmt, v, given)
	}
	switch loaded := len(expected.rows); {
	case loaded == 0:
	case loaded < n:
		_ = stmt.AddError(fmt.Errorf("%w: some rows of %s have been loaded and others have not", ErrVersion, stmt.Table))
	case len(stmt.Schema.PrimaryFields) == 0:
		_ = stmt.AddError(fmt.Errorf("%w: %s has no primary key", ErrVersion, stmt.Schema.Name))
	case loaded > 1 && expected.twice(stmt):
		_ = stmt.AddError(fmt.Errorf("%w: a row of %s is given twice", ErrVersion, stmt.Table))
	}
	return expected
}

// twice reports whether a row is given more than once: a version is good for one
// write.
func (e *expectedVersion) twice(stmt *gorm.Statement) bool {
	given := make(map[any]bool, len(e.rows))
	for _, r := range e.rows {
		var key any
		for _, f := range stmt.Schema.PrimaryFields {
			v := sqlvalue.Indirect(models.Value(stmt.Context, f, r.model))
			if !reflect.ValueOf(v).Comparable() {
				v = fmt.Sprint(v)
			}
			key = [2]any{key, v}
		}
		if given[key] {
			return true
		}
		given[key] = true
	}
	return false
}

// add adds a struct if it was loaded.
func (e *expectedVersion) add(stmt *gorm.Statement, v nextVersion, row reflect.Value) {
	if version := v.of(stmt, row); version != 0 {
		e.rows = append(e.rows, loadedRow{row, version})
	}
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
	models.Each(stmt, func(model reflect.Value) {
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
	stmt.AddClause(v.with(set, v.current(stmt)))
	return true
}

// current is the version as a statement finds it. Of several tables each may have one,
// but an alias is not known to all databases here.
func (v nextVersion) current(stmt *gorm.Statement) clause.Column {
	if from, ok := stmt.Clauses["FROM"].Expression.(clause.From); ok && len(from.Tables)+len(from.Joins) > 0 {
		return ofRow(v.field)
	}
	return clause.Column{Name: v.field.DBName}
}

// ofRow is a column of the row that a statement writes.
func ofRow(f *schema.Field) clause.Column {
	return clause.Column{Table: clause.CurrentTable, Name: f.DBName}
}

// with returns set with the increment of the version in it, and a stamp if the model
// has one.
func (v nextVersion) with(set clause.Set, current clause.Column) clause.Set {
	next := v.without(set)
	if stamp := stampOf(v.field.Schema); stamp != nil {
		next = append(next, assign(stamp, randomStamp()))
	}
	return append(next, assign(v.field, clause.Expr{SQL: "? + 1", Vars: []any{current}}))
}

// without returns set without the version and the stamp.
func (v nextVersion) without(set clause.Set) clause.Set {
	stamp := stampOf(v.field.Schema)
	rest := make(clause.Set, 0, len(set)+2)
	for _, a := range set {
		if !strings.EqualFold(a.Column.Name, v.field.DBName) && (stamp == nil || !strings.EqualFold(a.Column.Name, stamp.DBName)) {
			rest = append(rest, a)
		}
	}
	return rest
}

func assign(f *schema.Field, value any) clause.Assignment {
	return clause.Assignment{Column: clause.Column{Name: f.DBName}, Value: value}
}

// compare is a condition that where adds.
type compare struct{ clause.Expression }

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
	if len(expected.rows) == 0 && len(given) == len(w.Exprs) {
		return
	}
	if len(expected.rows) > 0 && len(given) > 0 {
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

// conditions names the rows: gorm does so only for models, and all apart from
// their versions.
func (e expectedVersion) conditions(stmt *gorm.Statement) (conds []clause.Expression) {
	switch len(e.rows) {
	case 0:
		return nil
	case 1:
		for _, eq := range e.row(stmt, e.rows[0], e.values) {
			conds = append(conds, compare{eq})
		}
		return conds
	}
	rows := make([]clause.Expression, len(e.rows))
	for i, r := range e.rows {
		rows[i] = clause.And(e.row(stmt, r, true)...)
	}
	return []clause.Expression{compare{clause.Or(rows...)}}
}

func (e expectedVersion) row(stmt *gorm.Statement, r loadedRow, keys bool) (conds []clause.Expression) {
	eq := func(column string, value any) {
		conds = append(conds, clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: column}, Value: value})
	}
	if keys {
		for _, f := range stmt.Schema.PrimaryFields {
			eq(f.DBName, models.Value(stmt.Context, f, r.model))
		}
	}
	eq(e.field.DBName, r.version)
	return conds
}
