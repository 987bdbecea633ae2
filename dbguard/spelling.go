package dbguard

import (
	"context"
	"database/sql/driver"
	"reflect"
	"strings"
)

// otherwise reports whether a row has other texts in its name than were given: its
// collation takes the two for the same, but the key that has the text in it is another.
// What a column does not give back as it got it says nothing.
func (t *Tx) otherwise(ctx context.Context, r *protectedRow, now reading, given []any) bool {
	for i, f := range r.fields {
		text, ok := textIn(given[i])
		stored, read := now.texts[f.DBName]
		if ok && read && text != stored && (t.key == "" || strings.Contains(t.key, text)) {
			return !t.factsOf(r.table).Alters && t.keepsTexts(ctx, r.table, f.DBName)
		}
	}
	return false
}

// keepsTexts reports whether a column gives texts back as it was given them, unlike
// one of type uuid or char.
func (t *Tx) keepsTexts(ctx context.Context, table, column string) bool {
	known, ok := t.plugin.texts.Load(table)
	if !ok {
		keeps, err := t.readKeepers(ctx, table)
		if err != nil {
			return false
		}
		known, _ = t.plugin.texts.LoadOrStore(table, keeps)
	}
	return known.(map[string]bool)[strings.ToLower(column)]
}

func (t *Tx) readKeepers(ctx context.Context, table string) (map[string]bool, error) {
	found, err := collationsOf(t.quiet(ctx, t.db), table)
	if err != nil {
		return nil, err
	}
	keeps := make(map[string]bool)
	for _, l := range found {
		keeps[l.Col] = !l.Padded && !strings.HasPrefix(l.Kind, "character(")
		if t.dialect.name == "sqlite" { // a text that looks like a number is one in other columns
			column, err := t.columnOf(table, l.Col)
			if err != nil {
				return nil, err
			}
			kind := strings.ToUpper(column.Kind)
			keeps[l.Col] = strings.Contains(kind, "CHAR") || strings.Contains(kind, "CLOB") || strings.Contains(kind, "TEXT")
		}
	}
	return keeps, nil
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
