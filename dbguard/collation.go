package dbguard

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/doctor"
	"github.com/belaygo/belay/internal/gormfront/models"
)

// checkCollations finds the columns that can protect a row, and for which texts are
// equal that are different keys: two keys then share one row.
func (c *checked) checkCollations() {
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
			c.found = append(c.found, doctor.DBCollation.Unmade(c.subject(), fmt.Errorf("compare texts as column %s does: %w", name, err), "let the service read the table"))
		}
		if len(alike) > 0 {
			c.found = append(c.found, doctor.DBCollation.Found(c.subject(), "column %s of a unique index (%s) takes texts for equal that differ in %s only, "+
				"but the lock does not, so two keys share a row", name, strings.TrimSpace(column.Texts+" "+column.Collation), strings.Join(alike, " or ")).
				Fixed("convert the key in the program in the same way, or use %s", c.exact()))
		}
	}
}

// alike lets the database compare texts as the column does, and returns the differences
// that it ignores.
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
	if c.makesNumbers(col) {
		differences = append(differences, "how a number is written")
	}
	return differences, nil
}

// makesNumbers reports whether SQLite stores a column's texts that look like numbers as
// numbers, so that "1" and "01" are one.
func (c *checked) makesNumbers(col catalogue.Column) bool {
	f := models.Column(c.stmt.Schema, col.Name)
	return c.db.Name() == "sqlite" && f != nil && f.IndirectFieldType.Kind() == reflect.String && col.MakesNumbers()
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
		return "the type TEXT with COLLATE BINARY"
	case "postgres":
		return "the type text with a deterministic collation"
	}
	return "ALTER TABLE ... MODIFY to give the column a binary collation, which AutoMigrate does not change: " + c.binary()
}

// binary is the collation of MySQL or MariaDB that compares bytes. MySQL has none before 8.0.17.
func (c *checked) binary() string {
	var name string
	err := c.db.Raw(`SELECT COALESCE(MAX(collation_name), '') FROM information_schema.collations
		WHERE collation_name IN ('utf8mb4_0900_bin', 'utf8mb4_nopad_bin')`).Scan(&name).Error
	if err != nil || name == "" {
		return "utf8mb4_bin, which ignores nothing but spaces at the end"
	}
	return name
}
