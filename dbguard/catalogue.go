package dbguard

import (
	"strings"
	"sync"

	"gorm.io/gorm"
)

// Parts of the queries of the catalogues. @name is a table, and @schema the one that it
// is named with, or "".
const (
	mysqlSchema   = "COALESCE(NULLIF(@schema, ''), DATABASE())"
	postgresTable = "to_regclass(CASE @schema WHEN '' THEN '' ELSE quote_ident(@schema) || '.' END || quote_ident(@name))"
)

// readCatalogue reads what the database's query, by the name of its dialect, returns for
// a table. gorm's Migrator has trouble with tables of another schema.
func readCatalogue(db *gorm.DB, queries map[string]string, table string, into any) error {
	return db.Raw(queries[db.Name()], nameOf(table)).Scan(into).Error
}

// nameOf returns a table's name as the catalogues have it.
func nameOf(table string) map[string]any {
	schema, name, qualified := strings.Cut(table, ".")
	if !qualified {
		schema, name = "", table
	}
	return map[string]any{"schema": schema, "name": name}
}

// remembered returns what is known of a table, which it reads once. It reads through the
// transaction; that creates no read view.
func remembered[T any](t *Tx, known *sync.Map, table string, read func(*gorm.DB, string) (T, error)) (T, error) {
	if found, ok := known.Load(table); ok {
		return found.(T), nil
	}
	ctx, cancel := t.judging()
	defer cancel()
	found, err := read(t.quiet(ctx, t.db), table)
	if err == nil {
		known.Store(table, found)
	}
	return found, err
}
