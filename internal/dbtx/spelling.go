package dbtx

import (
	"strings"

	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
)

// spelledOtherwise reports whether the database has other texts in a row's name than were
// given. Its collation takes the two for the same, but each is in a key of its own. Only
// columns count that return a text as it was given.
func (t *Tx) spelledOtherwise(r *protected.Row, now protected.Reading, given []any) bool {
	for i, f := range r.Fields {
		text, ok := sqlvalue.Text(given[i])
		stored, read := now.Texts[f.DBName]
		if ok && read && text != stored && (t.key == "" || strings.Contains(t.key, text)) {
			column, err := t.columnOf(r.Table, f.DBName)
			return err == nil && column.KeepsTexts(t.dialect.Name) && !t.factsOf(r.Table).Alters
		}
	}
	return false
}
