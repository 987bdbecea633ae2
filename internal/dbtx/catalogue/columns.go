package catalogue

import (
	"slices"
	"strings"
)

// SameColumns compares two sets of column names, whose case databases ignore.
func SameColumns(a, b []string) bool { return len(a) == len(b) && containsAll(b, a) }

func containsAll(columns, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(columns, func(c string) bool { return strings.EqualFold(c, name) })
	})
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
