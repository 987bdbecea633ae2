package dbguard

import (
	"fmt"
	"strings"

	"gorm.io/gorm"
)

// Each query lists the text columns of a table with what their texts are compared
// by: kind is the character set on MySQL and the type on PostgreSQL.
const (
	mysqlCollations = `SELECT LOWER(column_name) AS col, character_set_name AS kind, collation_name AS name, data_type = 'char' AS padded
		FROM information_schema.columns
		WHERE table_schema = COALESCE(NULLIF(@schema, ''), DATABASE()) AND table_name = @name AND collation_name IS NOT NULL`
	sqliteCollations = `SELECT DISTINCT LOWER(ii.name) AS col, '' AS kind, ii.coll AS name, FALSE AS padded
		FROM pragma_index_list(@name) il, pragma_index_xinfo(il.name) ii
		WHERE il."unique" = 1 AND ii."key" = 1 AND ii.name IS NOT NULL`
	postgresCollations = `SELECT LOWER(a.attname) AS col, format_type(a.atttypid, a.atttypmod) AS kind,
		quote_ident(n.nspname) || '.' || quote_ident(c.collname) AS name, FALSE AS padded
		FROM pg_attribute a
		JOIN pg_collation c ON c.oid = a.attcollation
		JOIN pg_namespace n ON n.oid = c.collnamespace
		WHERE a.attrelid = to_regclass(CASE @schema WHEN '' THEN '' ELSE quote_ident(@schema) || '.' END || quote_ident(@name))
		AND a.attnum > 0 AND NOT a.attisdropped`
)

// A collation is what the texts of a column are compared by.
type collation struct {
	Col    string `gorm:"column:col"`
	Kind   string `gorm:"column:kind"`
	Name   string `gorm:"column:name"`
	Padded bool   `gorm:"column:padded"` // spaces at the end are cut off, whatever the collation
}

// warnCollations logs of each column that can protect a row whether the database
// takes texts for the same that the lock does not: two keys then share one row.
func (c *checked) warnCollations(tmpl *template) {
	warn := func(format string, args ...any) {
		c.db.Logger.Warn(c.db.Statement.Context, "dbguard: model %s, table %s: %s",
			c.stmt.Schema.Name, c.table, fmt.Sprintf(format, args...))
	}
	protecting := make(map[string]bool)
	for _, columns := range c.candidates(tmpl) {
		for _, name := range columns {
			protecting[strings.ToLower(name)] = true
		}
	}
	collations, err := collationsOf(c.db, c.table)
	if err != nil {
		warn("read collations: %v", err)
	}
	for _, l := range collations {
		if !protecting[l.Col] {
			continue
		}
		alike, err := c.alike(l)
		if err != nil {
			warn("compare texts as column %s does: %v", l.Col, err)
		}
		if len(alike) > 0 {
			warn("column %s of a unique index (%s) does not tell texts apart that differ in %s only, but the lock does: "+
				"two keys share a row. Convert the key in the program in the same way, or use %s", l.Col, l, strings.Join(alike, " or "), c.exact())
		}
	}
}

func collationsOf(db *gorm.DB, table string) (found []collation, err error) {
	query := mysqlCollations
	switch db.Name() {
	case "sqlite":
		query = sqliteCollations
	case "postgres":
		query = postgresCollations
	}
	err = db.Raw(query, nameOf(table)).Scan(&found).Error
	return found, err
}

// alike has the database compare texts as the column does, and returns in what those
// differ that it takes for the same.
func (c *checked) alike(l collation) (differences []string, err error) {
	for _, pair := range []struct{ difference, a, b string }{
		{"case", "a", "A"},
		{"accents", "e", "é"},
		{"spaces at the end", "a", "a "},
	} {
		var same bool
		if err := c.db.Raw(fmt.Sprintf("SELECT %s = %s", c.literal(l, pair.a), c.literal(l, pair.b))).Scan(&same).Error; err != nil {
			return differences, err
		}
		if same || l.Padded && pair.difference == "spaces at the end" {
			differences = append(differences, pair.difference)
		}
	}
	return differences, nil
}

// literal writes a text as a value of the column.
func (c *checked) literal(l collation, text string) string {
	switch c.db.Name() {
	case "sqlite":
		return fmt.Sprintf("'%s' COLLATE %q", text, l.Name)
	case "postgres":
		return fmt.Sprintf("CAST('%s' AS %s) COLLATE %s", text, l.Kind, l.Name)
	}
	return fmt.Sprintf("CONVERT('%s' USING %s) COLLATE %s", text, l.Kind, l.Name)
}

// exact is how a column is declared that compares bytes.
func (c *checked) exact() string {
	switch c.db.Name() {
	case "sqlite":
		return "COLLATE BINARY"
	case "postgres":
		return "the type text with a deterministic collation"
	}
	return "a binary collation: utf8mb4_0900_bin on MySQL, utf8mb4_nopad_bin on MariaDB"
}

func (l collation) String() string { return strings.TrimSpace(l.Kind + " " + l.Name) }
