// Package sqltext splits SQL into statements and words, past comments and strings, and
// says what a statement may do: end a transaction, write to a table, call a function. It
// is no parser and needs no database; where it is not sure it says what is safe to
// assume.
package sqltext
