package sqlvalue

import (
	"database/sql/driver"
	"reflect"
)

// IsInteger reports whether a value is an integer in the database.
func IsInteger(v any) bool {
	rv := reflect.ValueOf(Plain(v))
	return rv.CanInt() || rv.CanUint()
}

// DifferentIntegers reports whether two values are integers that differ.
func DifferentIntegers(a, b any) bool { return IsInteger(a) && IsInteger(b) && !Equal(a, b) }

// IsPlainInteger reports whether v is an integer, which has but one form. 0 may stand for
// one that the database makes.
func IsPlainInteger(v any) bool {
	_, ok := Indirect(v).(driver.Valuer)
	return !ok && IsInteger(v) && !IsZero(v)
}
