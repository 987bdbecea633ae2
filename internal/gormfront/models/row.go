package models

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
)

// Each calls f for every addressable struct among the statement's values.
func Each(stmt *gorm.Statement, f func(reflect.Value)) {
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

// EachRow calls f for every row among the models and the values of a statement, which are
// one struct if a model is inserted. row is the struct with the values; that of a map is
// the zero Value.
func EachRow(stmt *gorm.Statement, f func(value func(column string) any, row reflect.Value)) {
	model := func(row reflect.Value) { f(Values(stmt, row), row) }
	Each(stmt, model)
	switch dest := Indirect(stmt.Dest); {
	case !dest.IsValid():
	case dest.Type() == stmt.Schema.ModelType:
		if !same(dest, stmt.ReflectValue) {
			model(dest)
		}
	default:
		EachMap(stmt.Schema, dest, func(value func(column string) any) { f(value, reflect.Value{}) })
	}
}

// same reports whether two values are one variable.
func same(a, b reflect.Value) bool {
	return a.CanAddr() && b.CanAddr() && a.Type() == b.Type() && a.UnsafeAddr() == b.UnsafeAddr()
}

// EachMap does so for maps, in which a row can be given, too.
func EachMap(s *schema.Schema, dest reflect.Value, f func(value func(column string) any)) {
	if dest.Kind() == reflect.Struct { // most often: Interface would copy it
		return
	}
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

// Count returns how many rows an INSERT is given.
func Count(stmt *gorm.Statement) int {
	if k := stmt.ReflectValue.Kind(); k == reflect.Slice || k == reflect.Array {
		return stmt.ReflectValue.Len()
	}
	return 1
}

// Values returns the values of a model by column.
func Values(stmt *gorm.Statement, model reflect.Value) func(column string) any {
	return func(column string) any {
		if f := stmt.Schema.LookUpField(column); f != nil {
			return Value(stmt.Context, f, model)
		}
		return nil
	}
}

// Key returns the primary key of a model.
func Key(stmt *gorm.Statement, model reflect.Value) (key []any) {
	for _, f := range stmt.Schema.PrimaryFields {
		key = append(key, Value(stmt.Context, f, model))
	}
	return key
}

// KeyOfMap returns the primary key of a row given as a map, into which gorm puts
// it, and on some databases not even that.
func KeyOfMap(s *schema.Schema, value func(column string) any) (key []any) {
	for _, f := range s.PrimaryFields {
		v := value(f.DBName)
		if sqlvalue.IsNull(v) {
			return nil
		}
		key = append(key, v)
	}
	return key
}

// IsUpdate reports whether the statement is an UPDATE, as a soft delete is.
func IsUpdate(stmt *gorm.Statement) bool {
	_, ok := stmt.Clauses["SET"]
	return ok
}

// Assigned returns the value that an UPDATE sets the column of type T to, the zero value
// if it sets none.
func Assigned[T any](stmt *gorm.Statement) (value T) {
	f := FieldOf[T](stmt.Schema)
	set, _ := stmt.Clauses["SET"].Expression.(clause.Set)
	for _, a := range set {
		if v, ok := a.Value.(T); ok && f != nil && a.Column.Name == f.DBName {
			return v
		}
	}
	return value
}

// AssignsKey reports whether an UPDATE sets a column of the primary key.
func AssignsKey(stmt *gorm.Statement) bool {
	set, _ := stmt.Clauses["SET"].Expression.(clause.Set)
	return slices.ContainsFunc(set, func(a clause.Assignment) bool {
		return slices.Contains(stmt.Schema.PrimaryFieldDBNames, a.Column.Name)
	})
}
