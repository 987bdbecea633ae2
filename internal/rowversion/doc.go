// Package rowversion has the columns of a model that tell the writes of a row apart: its
// version, which a statement of gorm compares and raises, and its stamp. dbguard exports
// them.
package rowversion
