package dbguard

import (
	"fmt"
	"reflect"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// protectedAmong returns the protected rows among the models of a statement.
func (t *Tx) protectedAmong(stmt *gorm.Statement) (rows []*protectedRow) {
	if stmt.Schema == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.protected {
		if r.table != stmt.Table {
			continue
		}
		found := false
		eachRow(stmt, func(value func(column string) any) { found = found || r.is(value) })
		if found {
			rows = append(rows, r)
		}
	}
	return rows
}

// eachRow calls f for every row among the models and the values of a statement.
func eachRow(stmt *gorm.Statement, f func(value func(column string) any)) {
	model := func(row reflect.Value) {
		f(func(column string) any {
			field := stmt.Schema.LookUpField(column)
			if field == nil {
				return nil
			}
			v, _ := field.ValueOf(stmt.Context, row)
			return v
		})
	}
	eachModel(stmt, model)
	switch dest := indirectAll(stmt.Dest); {
	case !dest.IsValid():
	case dest.Type() == stmt.Schema.ModelType:
		model(dest)
	default:
		eachMap(stmt.Schema, dest, f)
	}
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
			for name, v := range row {
				if field := s.LookUpField(name); field != nil && field.DBName == column {
					return v
				}
			}
			return nil
		})
	}
}

// is reports whether a row with the given values is the row.
func (r *protectedRow) is(value func(column string) any) bool {
	for i, f := range r.fields {
		if !equal(value(f.DBName), r.values[i]) {
			return false
		}
	}
	return true
}

// equal compares two values of one column, which may come from models that
// declare it differently.
func equal(a, b any) bool {
	a, b = indirect(a), indirect(b)
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
