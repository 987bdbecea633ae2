package dbguard

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
)

// warnCollations logs which columns that can protect a row take texts for equal that the
// lock does not: two keys then share one row.
func (c *checked) warnCollations() {
	warn := func(format string, args ...any) {
		c.db.Logger.Warn(c.db.Statement.Context, "dbguard: model %s, table %s: %s",
			c.stmt.Schema.Name, c.table, fmt.Sprintf(format, args...))
	}
	protecting := make(map[string]catalogue.Column)
	for _, columns := range c.candidates() {
		for _, name := range columns {
			if column := c.columns[strings.ToLower(name)]; column.Collation != "" {
				protecting[column.Name] = column
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(protecting)) {
		column := protecting[name]
		alike, err := c.alike(column)
		if err != nil {
			warn("compare texts as column %s does: %v", name, err)
		}
		if len(alike) > 0 {
			warn("column %s of a unique index (%s) takes texts for equal that differ in %s only, but the lock does not: "+
				"two keys share a row. Convert the key in the program in the same way, or use %s",
				name, strings.TrimSpace(column.Texts+" "+column.Collation), strings.Join(alike, " or "), c.exact())
		}
	}
}

// alike has the database compare texts as the column does, and returns in what those
// differ that it takes for the same.
func (c *checked) alike(col catalogue.Column) (differences []string, err error) {
	for _, pair := range []struct{ difference, a, b string }{
		{"case", "a", "A"},
		{"accents", "e", "é"},
		{"spaces at the end", "a", "a "},
	} {
		var same bool
		if err := c.db.Raw(fmt.Sprintf("SELECT %s = %s", c.literal(col, pair.a), c.literal(col, pair.b))).Scan(&same).Error; err != nil {
			return differences, err
		}
		if same || col.Padded() && pair.difference == "spaces at the end" {
			differences = append(differences, pair.difference)
		}
	}
	return differences, nil
}

// literal writes a text as a value of the column.
func (c *checked) literal(col catalogue.Column, text string) string {
	switch c.db.Name() {
	case "sqlite":
		return fmt.Sprintf("'%s' COLLATE %q", text, col.Collation)
	case "postgres":
		return fmt.Sprintf("CAST('%s' AS %s) COLLATE %s", text, col.Texts, col.Collation)
	}
	return fmt.Sprintf("CONVERT('%s' USING %s) COLLATE %s", text, col.Texts, col.Collation)
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
