package catalogue

import (
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"
)

// A Column is a column of a table, as the database has it.
type Column struct {
	Name      string `gorm:"column:name"`
	Kind      string `gorm:"column:kind"`
	Digits    *int   `gorm:"column:digits"` // of a second; nil if it is no time, or a date
	Nullable  bool   `gorm:"column:nullable"`
	Texts     string `gorm:"column:texts"`     // the character set on MySQL, the type with its length on PostgreSQL
	Collation string `gorm:"column:collation"` // "" if it has no texts; on SQLite, of its unique index
}

// Each query lists the columns of a table.
var columnQueries = map[string]string{
	"mysql": `SELECT column_name AS name, data_type AS kind, datetime_precision AS digits, is_nullable = 'YES' AS nullable,
			character_set_name AS texts, collation_name AS collation
		FROM information_schema.columns
		WHERE table_schema = ` + mysqlSchema + ` AND table_name = @name`,
	"postgres": `SELECT a.attname AS name, format_type(a.atttypid, NULL) AS kind, i.datetime_precision AS digits, NOT a.attnotnull AS nullable,
			format_type(a.atttypid, a.atttypmod) AS texts, quote_ident(ln.nspname) || '.' || quote_ident(l.collname) AS collation
		FROM pg_attribute a
		JOIN pg_class c ON c.oid = a.attrelid
		JOIN pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_collation l ON l.oid = a.attcollation
		LEFT JOIN pg_namespace ln ON ln.oid = l.collnamespace
		LEFT JOIN information_schema.columns i ON i.table_schema = n.nspname AND i.table_name = c.relname AND i.column_name = a.attname
		WHERE a.attrelid = ` + postgresTable + ` AND a.attnum > 0 AND NOT a.attisdropped`,
	"sqlite": `SELECT name, type AS kind, NULL AS digits, "notnull" = 0 AS nullable, '' AS texts,
			(SELECT MAX(ii.coll) FROM pragma_index_list(@name) il, pragma_index_xinfo(il.name) ii
				WHERE il."unique" = 1 AND ii."key" = 1 AND ii.name = t.name COLLATE NOCASE) AS collation
		FROM pragma_table_info(@name) t`,
}

// Columns reads the columns of a table, by their names in lower case. There are
// none if there is no such table.
func Columns(db *gorm.DB, table string) (map[string]Column, error) {
	var found []Column
	if err := read(db, columnQueries, table, &found); err != nil {
		return nil, fmt.Errorf("read columns of %s: %w", table, err)
	}
	columns := make(map[string]Column, len(found))
	for _, c := range found {
		columns[strings.ToLower(c.Name)] = c
	}
	return columns, nil
}

// Padded reports whether spaces at the end are cut off, whatever the collation.
func (c Column) Padded() bool { return c.Kind == "char" }

// KeepsTexts reports whether the column returns a text as it was given. A char cuts off
// spaces, and a uuid has one spelling. On SQLite other columns make numbers of texts
// that look like one.
func (c Column) KeepsTexts(dialect string) bool {
	if dialect == "sqlite" {
		kind := strings.ToUpper(c.Kind)
		return strings.Contains(kind, "CHAR") || strings.Contains(kind, "CLOB") || strings.Contains(kind, "TEXT")
	}
	return c.Collation != "" && !c.Padded() && !strings.HasPrefix(c.Texts, "character(")
}

// Unit returns what a time is rounded to that is put into the column.
func (c Column) Unit() time.Duration {
	digits := 6
	if c.Digits != nil {
		digits = *c.Digits
	}
	unit := time.Second
	for range digits {
		unit /= 10
	}
	return unit
}
