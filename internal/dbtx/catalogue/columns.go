package catalogue

import (
	"slices"
	"strings"
)

// SameColumns compares two sets of column names, whose case databases ignore.
func SameColumns(a, b []string) bool {
	missing := func(name string) bool {
		return !slices.ContainsFunc(b, func(c string) bool { return strings.EqualFold(c, name) })
	}
	return len(a) == len(b) && !slices.ContainsFunc(a, missing)
}

// WithPrimary adds the primary key, for which SQLite may list no index.
func WithPrimary(indexes [][]string, primary []string) [][]string {
	if len(primary) == 0 || slices.ContainsFunc(indexes, func(c []string) bool { return SameColumns(c, primary) }) {
		return indexes
	}
	return append(slices.Clone(indexes), primary)
}

// Listing writes columns for people.
func Listing(columns []string) string { return "(" + strings.Join(columns, ", ") + ")" }
