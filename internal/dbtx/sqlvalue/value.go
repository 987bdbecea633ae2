package sqlvalue

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// Indirect follows a pointer that is not nil.
func Indirect(v any) any {
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer && !rv.IsNil() {
		return rv.Elem().Interface()
	}
	return v
}

// Equal compares two values of one column, which may come from models that
// declare it differently.
func Equal(a, b any) bool {
	a, b = Indirect(a), Indirect(b)
	if d, ok := b.(Day); ok {
		x, ok := a.(time.Time)
		return ok && d.is(x)
	}
	if x, ok := a.(time.Time); ok {
		y, ok := b.(time.Time)
		return ok && x.Equal(y)
	}
	return reflect.DeepEqual(a, b) || fmt.Sprint(a) == fmt.Sprint(b)
}

// IsNull reports whether a value is NULL in the database.
func IsNull(v any) bool {
	if valuer, ok := v.(driver.Valuer); ok {
		if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer && rv.IsNil() {
			return true
		}
		v, _ = valuer.Value()
	}
	rv := reflect.ValueOf(v)
	return !rv.IsValid() || rv.Kind() == reflect.Pointer && rv.IsNil()
}

// IsZero reports whether a value is the zero of its type, or a pointer to it.
func IsZero(v any) bool {
	rv := reflect.ValueOf(Indirect(v))
	return !rv.IsValid() || rv.IsZero()
}

// SameKey reports whether two primary keys are equal, part by part.
func SameKey(a, b []any) bool { return slices.EqualFunc(a, b, Equal) }
