package dbguard

import "errors"

var (
	// ErrTxControl: a statement inside a guarded transaction would have ended
	// it, or committed implicitly.
	ErrTxControl = errors.New("dbguard: transaction control inside a guarded transaction")
	// ErrOutside: a statement carries the context of a guarded transaction but
	// runs on another connection, where it would not be rolled back with it.
	ErrOutside = errors.New("dbguard: statement outside the guarded transaction: use the tx and the ctx that the operation is given")
	// ErrRowsOpen: rows of an earlier query have not been closed. MySQL takes no
	// statement before, and nothing can be committed.
	ErrRowsOpen = errors.New("dbguard: rows of an earlier query are open: close them first")
	// ErrPoisoned: an earlier failure has made the transaction unfit; it can
	// only be rolled back. It comes with that failure.
	ErrPoisoned = errors.New("dbguard: transaction can only be rolled back")
	// ErrVersion: a write would pass the versions of its model by.
	ErrVersion = errors.New("dbguard: versions would not be compared")
	// ErrUnprotectable: no unique index fits a row that was to be protected.
	ErrUnprotectable = errors.New("dbguard: row can't be protected")
	// ErrDialect: the database is none of MySQL, MariaDB, PostgreSQL and SQLite.
	ErrDialect = errors.New("dbguard: unsupported database")
)
