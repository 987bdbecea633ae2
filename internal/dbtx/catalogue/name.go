package catalogue

import "strings"

// BareName is a table's name without its schema, in lower case.
func BareName(table string) string {
	return strings.ToLower(table[strings.LastIndexByte(table, '.')+1:])
}

// MayBeTable reports whether two names may be those of one table: they are equal, or
// differ only in that one has a schema.
func MayBeTable(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	return strings.Contains(a, ".") != strings.Contains(b, ".") && BareName(a) == BareName(b)
}
