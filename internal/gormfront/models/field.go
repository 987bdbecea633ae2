package models

import (
	"context"
	"reflect"
	"strings"

	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
)

// FieldOf returns the column of type T, or nil. A hidden field of an embedded struct
// does not count.
func FieldOf[T any](s *schema.Schema) *schema.Field {
	t := reflect.TypeFor[T]()
	for _, f := range s.Fields {
		if f.IndirectFieldType == t && s.FieldsByDBName[f.DBName] == f {
			return f
		}
	}
	return nil
}

// Value returns a field's value in a model.
func Value(ctx context.Context, f *schema.Field, model reflect.Value) any {
	v, _ := f.ValueOf(ctx, model)
	return v
}

// In returns the value of a field of type T in a model, the zero value if it is not set.
func In[T any](ctx context.Context, f *schema.Field, model reflect.Value) T {
	v, _ := sqlvalue.Indirect(Value(ctx, f, model)).(T)
	return v
}

// Indirect follows the pointers of v.
func Indirect(v any) reflect.Value {
	rv := reflect.ValueOf(v)
	for rv.Kind() == reflect.Pointer {
		rv = rv.Elem()
	}
	return rv
}

// Column returns the field of a column, whose case databases ignore, or nil.
func Column(s *schema.Schema, column string) *schema.Field {
	if f := s.FieldsByDBName[column]; f != nil {
		return f
	}
	for name, f := range s.FieldsByDBName {
		if strings.EqualFold(name, column) {
			return f
		}
	}
	return nil
}
