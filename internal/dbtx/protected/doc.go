// Package protected keeps the rows that a key protects. It names them by models, finds them
// among the rows of a statement, and remembers their first readings.
package protected
