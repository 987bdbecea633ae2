// Package protected keeps the rows that a key protects. It names them by models, finds them
// among the rows of a statement, and remembers what was seen of them first.
package protected
