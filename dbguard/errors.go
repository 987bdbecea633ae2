package dbguard

import "errors"

var (
	// ErrOutside is returned for a statement that has the context of a guarded transaction
	// but runs on another connection. It would not be rolled back with the transaction.
	ErrOutside = errors.New("dbguard: statement outside the guarded transaction: use the tx and the ctx that the operation is given")
	// ErrVersion is returned for a write that would bypass the versions of its model, and
	// for a row whose version is below 1 or at the limit of its column.
	ErrVersion = errors.New("dbguard: versions would not be compared")
	// ErrUnprotectable is returned when no unique index of the table fits a row that is to
	// be protected, and for a write that has changed more rows than it was given.
	ErrUnprotectable = errors.New("dbguard: row can't be protected")
)
