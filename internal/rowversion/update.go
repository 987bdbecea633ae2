package rowversion

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
	"github.com/belaygo/belay/internal/gormfront/models"
)

// updateVersion adds the increment to an update, and the compare when the model
// carries a version.
type updateVersion struct{ modifier }

// ModifyStatement implements gorm.StatementModifier.
func (v updateVersion) ModifyStatement(stmt *gorm.Statement) {
	if stmt.SQL.Len() > 0 || !only(v.field, stmt) {
		return // raw SQL
	}
	if models.ForgetExpected(stmt) { // of an earlier use of the statement
		delete(stmt.Clauses, "SET")
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
	expected.Keep(stmt)
}

// loaded returns the versions that the updated structs carry: the models, or the
// values if they are a whole row.
func (v updateVersion) loaded(stmt *gorm.Statement) models.Expected {
	model := models.Indirect(stmt.Model)
	expected := v.among(stmt, model)
	if k := model.Kind(); len(expected.Rows) == 0 && k != reflect.Slice && k != reflect.Array {
		expected.Values = true
		v.add(stmt, &expected, models.Indirect(stmt.Dest))
	}
	return expected
}

// among returns the versions in a struct or in several.
func (v updateVersion) among(stmt *gorm.Statement, given reflect.Value) models.Expected {
	expected, n := models.Expected{Field: v.field, Steps: models.Steps(stmt)}, 1
	if k := given.Kind(); k == reflect.Slice || k == reflect.Array {
		n = given.Len()
		for i := range n {
			v.add(stmt, &expected, reflect.Indirect(given.Index(i)))
		}
	} else {
		v.add(stmt, &expected, given)
	}
	switch loaded := len(expected.Rows); {
	case loaded == 0:
	case loaded < n:
		_ = stmt.AddError(fmt.Errorf("%w: some rows of %s have been loaded and others have not", ErrVersion, stmt.Table))
	case len(stmt.Schema.PrimaryFields) == 0:
		_ = stmt.AddError(fmt.Errorf("%w: %s has no primary key", ErrVersion, stmt.Schema.Name))
	case slices.ContainsFunc(expected.Rows, func(r models.Loaded) bool { return r.Version > math.MaxInt64-expected.Steps }):
		_ = stmt.AddError(fmt.Errorf("%w: no version is above that of a row of %s", ErrVersion, stmt.Table))
	case loaded > 1 && twice(stmt, expected):
		_ = stmt.AddError(fmt.Errorf("%w: a row of %s is given twice", ErrVersion, stmt.Table))
	}
	return expected
}

// twice reports whether a row is given more than once: a version is good for one
// write.
func twice(stmt *gorm.Statement, e models.Expected) bool {
	given := make(map[any]bool, len(e.Rows))
	for _, r := range e.Rows {
		var key any
		for _, f := range stmt.Schema.PrimaryFields {
			v := sqlvalue.Plain(models.Value(stmt.Context, f, r.Model))
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
func (v updateVersion) add(stmt *gorm.Statement, e *models.Expected, row reflect.Value) {
	if version := v.of(stmt, row); version != 0 {
		e.Rows = append(e.Rows, models.Loaded{Model: row, Version: int64(version)})
	}
}

// of returns the version that row carries, 0 if none. Without a primary key it
// was not loaded, and a compare would choose the rows.
func (v updateVersion) of(stmt *gorm.Statement, row reflect.Value) Version {
	if row.Kind() != reflect.Struct || row.Type() != stmt.Schema.ModelType {
		return 0
	}
	for _, f := range stmt.Schema.PrimaryFields {
		if _, unset := f.ValueOf(stmt.Context, row); unset {
			return 0
		}
	}
	return models.In[Version](stmt.Context, v.field, row)
}

// remember returns a function that gives the models the versions that they have
// now.
func (v updateVersion) remember(stmt *gorm.Statement) (restore func()) {
	var undo []func()
	models.Each(stmt, func(model reflect.Value) {
		was := models.In[Version](stmt.Context, v.field, model)
		undo = append(undo, func() {
			if models.In[Version](stmt.Context, v.field, model) != was {
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
func (v updateVersion) increment(stmt *gorm.Statement) bool {
	set, _ := stmt.Clauses["SET"].Expression.(clause.Set)
	if set == nil {
		if set = callbacks.ConvertToAssignments(stmt); len(set) == 0 {
			return false
		}
	}
	stmt.AddClause(v.with(set, v.current(stmt), models.Steps(stmt)))
	return true
}

// current is the version as a statement finds it. Of several tables each may have one,
// but an alias is not known to all databases here.
func (v updateVersion) current(stmt *gorm.Statement) clause.Column {
	if from, ok := stmt.Clauses["FROM"].Expression.(clause.From); ok && len(from.Tables)+len(from.Joins) > 0 {
		return ofRow(v.field)
	}
	return clause.Column{Name: v.field.DBName}
}

// ofRow is a column of the row that a statement writes.
func ofRow(f *schema.Field) clause.Column {
	return clause.Column{Table: clause.CurrentTable, Name: f.DBName}
}

// with returns set with the increment of the version in it, by steps, and a stamp if the
// model has one.
func (v updateVersion) with(set clause.Set, current clause.Column, steps int64) clause.Set {
	next := v.without(set)
	if stamp := stampOf(v.field.Schema); stamp != nil {
		next = append(next, assign(stamp, RandomStamp()))
	}
	return append(next, assign(v.field, clause.Expr{SQL: "? + " + strconv.FormatInt(steps, 10), Vars: []any{current}}))
}

// without returns set without the version and the stamp.
func (v updateVersion) without(set clause.Set) clause.Set {
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
