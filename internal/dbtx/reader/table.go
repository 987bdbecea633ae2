package reader

import (
	"strings"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
)

// SameTable reports whether two names are those of one table. The schema of a name
// without one is read from the database.
func (q *Reader) SameTable(a, b string) bool {
	switch {
	case strings.EqualFold(a, b):
		return true
	case !catalogue.MayBeTable(a, b):
		return false
	case strings.Contains(a, "."):
		a, b = b, a
	}
	schema, err := q.schemaOf(a)
	return err == nil && strings.EqualFold(schema+"."+a, b)
}

// schemaOf returns the schema of a table that is named without one, "" if there is no
// such table. Only the transaction remembers it: another one may have another.
func (q *Reader) schemaOf(table string) (string, error) {
	if known, ok := q.schemas.Load(table); ok {
		return known.(string), nil
	}
	ctx, cancel := q.Context()
	defer cancel()
	schema, err := q.catalogue().SchemaOf(ctx, table)
	if err == nil {
		q.schemas.Store(table, schema)
	}
	return schema, err
}
