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

// Listing writes columns for people.
func Listing(columns []string) string { return "(" + strings.Join(columns, ", ") + ")" }
