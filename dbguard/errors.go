package dbguard

import "errors"

var (
	// ErrTxControl is returned for a statement inside a guarded transaction that would
	// end it, or commit implicitly.
	ErrTxControl = errors.New("dbguard: transaction control inside a guarded transaction")
	// ErrOutside is returned for a statement that carries the context of a guarded
	// transaction but runs on another connection. It would not be rolled back with the
	// transaction.
	ErrOutside = errors.New("dbguard: statement outside the guarded transaction: use the tx and the ctx that the operation is given")
	// ErrRowsOpen is returned while rows of an earlier query have not been closed. MySQL
	// takes no statement then, and nothing can be committed.
	ErrRowsOpen = errors.New("dbguard: rows of an earlier query are open: close them first")
	// ErrPoisoned is returned when an earlier failure has made the transaction unfit, so
	// that it can only be rolled back. It comes with that failure.
	ErrPoisoned = errors.New("dbguard: transaction can only be rolled back")
	// ErrVersion is returned for a write that would not compare the versions of its model.
	ErrVersion = errors.New("dbguard: versions would not be compared")
	// ErrUnprotectable is returned when no unique index fits a row that is to be
	// protected.
	ErrUnprotectable = errors.New("dbguard: row can't be protected")
	// ErrDialect is returned when the database is none of MySQL, MariaDB, PostgreSQL and
	// SQLite.
	ErrDialect = errors.New("dbguard: unsupported database")
)
