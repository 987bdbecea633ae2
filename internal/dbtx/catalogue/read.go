package catalogue

import (
	"strings"

	"gorm.io/gorm"
)

// Parts of the catalogues' queries. @name is a table, and @schema its schema, or "".
const (
	mysqlSchema   = "COALESCE(NULLIF(@schema, ''), DATABASE())"
	postgresTable = "to_regclass(CASE @schema WHEN '' THEN '' ELSE quote_ident(@schema) || '.' END || quote_ident(@name))"
)

// read reads the result of the dialect's query for a table. gorm's Migrator has trouble
// with tables of another schema.
func read(db *gorm.DB, queries map[string]string, table string, into any) error {
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

// SchemaOf returns the schema of a table that is named without one, "" if there is no
// such table.
func SchemaOf(db *gorm.DB, table string) (schema string, err error) {
	err = read(db, schemaQueries, table, &schema)
	return schema, err
}

var schemaQueries = map[string]string{
	"mysql": "SELECT DATABASE()",
	"postgres": `SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.oid = ` + postgresTable,
	"sqlite": "SELECT 'main'",
}
