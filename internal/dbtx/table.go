package dbtx

import (
	"strings"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
)

// sameTable reports whether two names are those of one table. The schema of a name
// without one is read from the database.
func (t *Tx) sameTable(a, b string) bool {
	switch {
	case strings.EqualFold(a, b):
		return true
	case !catalogue.MayBeTable(a, b):
		return false
	case strings.Contains(a, "."):
		a, b = b, a
	}
	schema, err := t.schemaOf(a)
	return err == nil && strings.EqualFold(schema+"."+a, b)
}

// schemaOf returns the schema of a table that is named without one, "" if there is no
// such table. Only the transaction remembers it: another one may have another.
func (t *Tx) schemaOf(table string) (string, error) {
	t.mu.Lock()
	known, ok := t.schemas[table]
	t.mu.Unlock()
	if ok {
		return known, nil
	}
	ctx, cancel := t.judging()
	defer cancel()
	schema, err := catalogue.SchemaOf(t.quiet(ctx, t.db), table)
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.schemas == nil {
		t.schemas = make(map[string]string)
	}
	t.schemas[table] = schema
	return schema, nil
}
