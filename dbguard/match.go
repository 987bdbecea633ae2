package dbguard

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// protectedAmong returns the protected rows among the models of a statement.
func (t *Tx) protectedAmong(stmt *gorm.Statement) (rows []*protectedRow) {
	seen := make(map[*protectedRow]bool)
	t.eachProtected(stmt, func(r *protectedRow, _ func(column string) any) {
		if !seen[r] {
			seen[r] = true
			rows = append(rows, r)
		}
	})
	return rows
}

// eachProtected calls f for every row of a statement that is protected, with its
// values.
func (t *Tx) eachProtected(stmt *gorm.Statement, f func(r *protectedRow, value func(column string) any)) {
	if stmt.Schema == nil {
		return
	}
	eachRow(stmt, func(value func(column string) any) {
		for _, r := range t.rowsWith(stmt, value) {
			f(r, value)
		}
	})
}

// rowsWith returns the protected rows of a statement's table that have the values.
func (t *Tx) rowsWith(stmt *gorm.Statement, value func(column string) any) (rows []*protectedRow) {
	table := tableOf(stmt)
	t.mu.Lock()
	shapes := t.protected.shapes
	t.mu.Unlock()
	for _, shape := range shapes {
		if !t.sameTable(shape.table, table) {
			continue
		}
		t.mu.Lock()
		for _, r := range t.protected.with(shape, value) {
			if r.is(value) {
				rows = append(rows, r)
			}
		}
		t.mu.Unlock()
	}
	return rows
}

// eachRow calls f for every row among the models and the values of a statement.
func eachRow(stmt *gorm.Statement, f func(value func(column string) any)) {
	model := func(row reflect.Value) { f(valuesOf(stmt, row)) }
	eachModel(stmt, model)
	switch dest := indirectAll(stmt.Dest); {
	case !dest.IsValid():
	case dest.Type() == stmt.Schema.ModelType:
		model(dest)
	default:
		eachMap(stmt.Schema, dest, f)
	}
}

// rowsIn returns how many rows an INSERT is given.
func rowsIn(stmt *gorm.Statement) int {
	if k := stmt.ReflectValue.Kind(); k == reflect.Slice || k == reflect.Array {
		return stmt.ReflectValue.Len()
	}
	return 1
}

// eachMap does so for maps, in which a row can be given, too.
func eachMap(s *schema.Schema, dest reflect.Value, f func(value func(column string) any)) {
	var rows []map[string]any
	switch v := dest.Interface().(type) {
	case map[string]any:
		rows = append(rows, v)
	case []map[string]any:
		rows = v
	}
	for _, row := range rows {
		f(func(column string) any {
			if v, ok := row[column]; ok { // where gorm puts a key that the database made
				return v
			}
			for name, v := range row {
				if field := s.LookUpField(name); field != nil && field.DBName == column {
					return v
				}
			}
			return nil
		})
	}
}

// is reports whether a row with the given values is the row. With NULL in its
// key it is none in particular.
func (r *protectedRow) is(value func(column string) any) bool {
	for i, f := range r.fields {
		v := value(f.DBName)
		if isNull(v) {
			return false
		}
		if !equal(v, r.values[i]) && (r.stored == nil || !equal(v, r.stored[i])) {
			return false
		}
	}
	return true
}

// equal compares two values of one column, which may come from models that
// declare it differently.
func equal(a, b any) bool {
	a, b = indirect(a), indirect(b)
	if d, ok := b.(day); ok {
		x, ok := a.(time.Time)
		return ok && d.is(x)
	}
	if x, ok := a.(time.Time); ok {
		y, ok := b.(time.Time)
		return ok && x.Equal(y)
	}
	return reflect.DeepEqual(a, b) || fmt.Sprint(a) == fmt.Sprint(b)
}

func indirect(v any) any {
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer && !rv.IsNil() {
		return rv.Elem().Interface()
	}
	return v
}

// isNull reports whether a value is NULL in the database.
func isNull(v any) bool {
	if valuer, ok := v.(driver.Valuer); ok {
		if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer && rv.IsNil() {
			return true
		}
		v, _ = valuer.Value()
	}
	rv := reflect.ValueOf(v)
	return !rv.IsValid() || rv.Kind() == reflect.Pointer && rv.IsNil()
}

func isZero(v any) bool {
	rv := reflect.ValueOf(indirect(v))
	return !rv.IsValid() || rv.IsZero()
}
