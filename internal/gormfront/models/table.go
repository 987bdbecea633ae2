package models

import (
	"strings"

	"gorm.io/gorm"
)

// TableOf returns the table of a statement, with its schema if it is named with one. It
// returns "" if the table is not known: gorm may have an alias in its place.
func TableOf(stmt *gorm.Statement) string {
	if name, ok := NamedTable(stmt); ok {
		return name
	}
	if s := stmt.Schema; s != nil && s.Table == stmt.Table {
		return s.Table
	}
	return ""
}

// NamedTable returns the table of a statement, if that is only a name and an alias.
func NamedTable(stmt *gorm.Statement) (name string, ok bool) {
	if stmt.TableExpr == nil {
		return stmt.Table, true
	}
	words := strings.Fields(stmt.TableExpr.SQL)
	if n := len(words); n == 1 || n == 2 || n == 3 && strings.EqualFold(words[1], "AS") {
		return unquoted(words[0])
	}
	return "", false
}

// unquoted returns a table's name, which may have a schema, without quotes. It reports
// false if a part is no name, such as one that was cut at a space.
func unquoted(word string) (name string, ok bool) {
	parts := strings.Split(word, ".")
	for i, part := range parts {
		for _, quotes := range []string{"``", `""`, "[]"} {
			if len(part) > 2 && part[0] == quotes[0] && part[len(part)-1] == quotes[1] {
				part = part[1 : len(part)-1]
				break
			}
		}
		if part == "" || strings.ContainsAny(part, "(?,`\"[]") {
			return "", false
		}
		parts[i] = part
	}
	return strings.Join(parts[max(0, len(parts)-2):], "."), true
}
