package catalogue

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Column is a column of a table, as the database has it.
type Column struct {
	Name      string
	Kind      string
	Digits    *int // of a second; nil if it is no time, or a date
	Nullable  bool
	Texts     string // the character set on MySQL, the type with its length on PostgreSQL
	Collation string // "" if it has no texts; on SQLite, of its unique index
	Default   string // as SQL; "" if there is none
	Unsigned  bool
	Numbers   bool   // MySQL replaces 0 by a generated number
	Length    *int64 // of a text on MySQL, which cuts off the rest if it is not strict: characters, or bytes; nil elsewhere
}

// Each query lists the columns of a table, with the fields of a Column in their order.
var columnQueries = map[string]string{
	"mysql": `SELECT column_name AS name, data_type AS kind, datetime_precision AS digits, is_nullable = 'YES' AS nullable,
			character_set_name AS texts, collation_name AS collation, column_default AS def,
			column_type LIKE '%unsigned%' AS nosign, extra LIKE '%auto_increment%' AS numbers, character_maximum_length AS length
		FROM information_schema.columns
		WHERE table_schema = ` + mysqlSchema + ` AND table_name = @name`,
	"postgres": `SELECT a.attname AS name, format_type(a.atttypid, NULL) AS kind, i.datetime_precision AS digits, NOT a.attnotnull AS nullable,
			format_type(a.atttypid, a.atttypmod) AS texts, quote_ident(ln.nspname) || '.' || quote_ident(l.collname) AS collation,
			pg_get_expr(d.adbin, d.adrelid) AS def, FALSE AS nosign, FALSE AS numbers, NULL::bigint AS length
		FROM pg_attribute a
		JOIN pg_class c ON c.oid = a.attrelid
		JOIN pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		LEFT JOIN pg_collation l ON l.oid = a.attcollation
		LEFT JOIN pg_namespace ln ON ln.oid = l.collnamespace
		LEFT JOIN information_schema.columns i ON i.table_schema = n.nspname AND i.table_name = c.relname AND i.column_name = a.attname
		WHERE a.attrelid = ` + postgresTable + ` AND a.attnum > 0 AND NOT a.attisdropped`,
	"sqlite": `SELECT name, type AS kind, NULL AS digits, "notnull" = 0 AS nullable, '' AS texts,
			(SELECT MAX(ii.coll) FROM pragma_index_list(@name) il, pragma_index_xinfo(il.name) ii
				WHERE il."unique" = 1 AND ii."key" = 1 AND ii.name = t.name COLLATE NOCASE) AS collation,
			dflt_value AS def, FALSE AS nosign, FALSE AS numbers, NULL AS length
		FROM pragma_table_info(@name) t`,
}

// Columns reads the columns of a table, by their names in lower case. There are
// none if there is no such table.
func (s Source) Columns(ctx context.Context, table string) (map[string]Column, error) {
	columns := make(map[string]Column)
	err := s.read(ctx, columnQueries, table, func(rows *sql.Rows) error {
		var c Column
		var texts, collation, def sql.NullString
		err := rows.Scan(&c.Name, &c.Kind, &c.Digits, &c.Nullable, &texts, &collation, &def, &c.Unsigned, &c.Numbers, &c.Length)
		c.Texts, c.Collation, c.Default = texts.String, collation.String, def.String
		columns[strings.ToLower(c.Name)] = c
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read columns of %s: %w", table, err)
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
		return c.hasWord("CHAR", "CLOB", "TEXT")
	}
	return c.Collation != "" && !c.Padded() && !strings.HasPrefix(c.Texts, "character(")
}

// MakesNumbers reports whether a column of SQLite stores texts that look like numbers as
// numbers, though its type is not numeric, such as VARBINARY.
func (c Column) MakesNumbers() bool {
	return c.Kind != "" && !c.hasWord("CHAR", "CLOB", "TEXT", "BLOB", "INT", "REAL", "FLOA", "DOUB") //nolint:misspell // as SQLite looks for them
}

func (c Column) hasWord(words ...string) bool {
	kind := strings.ToUpper(c.Kind)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(kind, word) })
}

// Unit returns the unit to which the column rounds times.
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
