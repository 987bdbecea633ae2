// Package gormfront describes GORM's statements and models to the engine of the guarded
// transaction, which does not read GORM's syntax tree.
package gormfront
