package sqlvalue

import (
	"database/sql/driver"
	"reflect"
	"strings"
)

// Text returns the text that a value has in the database. It reports false if it is
// no text.
func Text(v any) (string, bool) {
	if valuer, ok := Indirect(v).(driver.Valuer); ok {
		v, _ = valuer.Value()
	}
	rv := reflect.ValueOf(Indirect(v))
	if rv.Kind() != reflect.String {
		return "", false
	}
	return rv.String(), true
}

// MayChange reports whether a database may keep a value in another form: a fraction, or
// a text without the spaces at its end.
func MayChange(v any) bool {
	switch rv := reflect.ValueOf(Indirect(v)); rv.Kind() {
	case reflect.Float32, reflect.Float64:
		return true
	case reflect.String:
		return strings.HasSuffix(rv.String(), " ")
	}
	return false
}
