package dbguard

import (
	"fmt"
	"strings"

	"gorm.io/gorm"
)

// Each query lists the columns of a table. gorm's Migrator has trouble with those of
// another schema.
const (
	mysqlColumns = `SELECT column_name AS name, data_type AS kind, datetime_precision AS digits, is_nullable = 'YES' AS nullable
		FROM information_schema.columns
		WHERE table_schema = COALESCE(NULLIF(@schema, ''), DATABASE()) AND table_name = @name`
	sqliteColumns = `SELECT name, type AS kind, NULL AS digits, "notnull" = 0 AS nullable
		FROM pragma_table_info(@name)`
	postgresColumns = `SELECT a.attname AS name, format_type(a.atttypid, NULL) AS kind, i.datetime_precision AS digits, NOT a.attnotnull AS nullable
		FROM pg_attribute a
		JOIN pg_class c ON c.oid = a.attrelid
		JOIN pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN information_schema.columns i ON i.table_schema = n.nspname AND i.table_name = c.relname AND i.column_name = a.attname
		WHERE a.attrelid = to_regclass(CASE @schema WHEN '' THEN '' ELSE quote_ident(@schema) || '.' END || quote_ident(@name))
		AND a.attnum > 0 AND NOT a.attisdropped`
)

// A column of a table, as the database has it.
type column struct {
	Name     string `gorm:"column:name"`
	Kind     string `gorm:"column:kind"`
	Digits   *int   `gorm:"column:digits"` // of a second; nil if it is no time, or a date
	Nullable bool   `gorm:"column:nullable"`
}

// columnsOf reads the columns of a table, by their names in lower case. There are none
// if there is no such table.
func columnsOf(db *gorm.DB, table string) (map[string]column, error) {
	query := mysqlColumns
	switch db.Name() {
	case "sqlite":
		query = sqliteColumns
	case "postgres":
		query = postgresColumns
	}
	var found []column
	if err := db.Raw(query, nameOf(table)).Scan(&found).Error; err != nil {
		return nil, fmt.Errorf("read columns of %s: %w", table, err)
	}
	columns := make(map[string]column, len(found))
	for _, c := range found {
		columns[strings.ToLower(c.Name)] = c
	}
	return columns, nil
}

// columnOf returns a column of a table, and remembers all of them.
func (t *Tx) columnOf(table, name string) (column, error) {
	known, ok := t.plugin.columns.Load(table)
	if !ok {
		ctx, cancel := t.judging()
		defer cancel()
		read, err := columnsOf(t.quiet(ctx, t.db), table)
		if err != nil {
			return column{}, err
		}
		known, _ = t.plugin.columns.LoadOrStore(table, read)
	}
	return known.(map[string]column)[strings.ToLower(name)], nil
}
