// Package models reads the rows that a statement of gorm is given: structs, slices of
// them, and maps.
package models
