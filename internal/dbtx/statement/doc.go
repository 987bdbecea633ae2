// Package statement describes the statements of a guarded transaction to its engine, which
// knows no front: not GORM's syntax tree, nor another library's. A front makes a Write of
// each statement.
package statement
