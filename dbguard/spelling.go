package dbguard

import (
	"database/sql/driver"
	"reflect"
	"strings"
)

// otherwise reports whether a row has other texts in its name than were given: its
// collation takes the two for the same, but the key that has the text in it is another.
// What a column does not give back as it got it says nothing.
func (t *Tx) otherwise(r *protectedRow, now reading, given []any) bool {
	for i, f := range r.fields {
		text, ok := textIn(given[i])
		stored, read := now.texts[f.DBName]
		if ok && read && text != stored && (t.key == "" || strings.Contains(t.key, text)) {
			column, err := t.columnOf(r.table, f.DBName)
			return err == nil && column.keepsTexts(t.dialect.name) && !t.factsOf(r.table).Alters
		}
	}
	return false
}

// textIn returns the text that a value is in the database.
func textIn(v any) (string, bool) {
	if valuer, ok := indirect(v).(driver.Valuer); ok {
		v, _ = valuer.Value()
	}
	rv := reflect.ValueOf(indirect(v))
	if rv.Kind() != reflect.String {
		return "", false
	}
	return rv.String(), true
}
