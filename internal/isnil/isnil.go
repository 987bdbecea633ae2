// Package isnil finds interfaces that hold nothing: a nil pointer in an interface is not nil, and
// panics at its first use, which may be in another goroutine.
package isnil

import "reflect"

// Value reports whether v is nil, or holds a nil pointer, function, map, channel or slice.
func Value(v any) bool {
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice:
		return r.IsNil()
	default:
		return false
	}
}
