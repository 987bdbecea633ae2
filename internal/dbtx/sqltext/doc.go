// Package sqltext splits SQL into statements and words, past comments and strings, and
// reports what a statement may do: end a transaction, write to a table, call a function.
// It is no parser and needs no database. Where it is not sure, it reports the safe
// assumption.
package sqltext
