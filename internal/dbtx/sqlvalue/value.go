package sqlvalue

import (
	"database/sql/driver"
	"fmt"
	"net"
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

// Plain returns a value as a driver gets it: what its Value method returns, or else a value of
// the basic kind. How its type prints is no part of it, as that may hide or shorten the value.
func Plain(v any) any {
	switch v.(type) {
	case nil, bool, int, int64, uint, uint64, float32, float64, string, []byte, time.Time:
		return v
	case net.IP: // has two forms of the same address
		return v
	}
	plain, err := driver.DefaultParameterConverter.ConvertValue(v)
	if err != nil {
		return Indirect(v)
	}
	return plain
}

// Equal compares two values of one column, which may come from models that
// declare it differently.
func Equal(a, b any) bool {
	a, b = Plain(a), Plain(b)
	if a == nil || b == nil {
		return a == nil && b == nil
	}
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
