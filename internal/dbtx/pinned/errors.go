package pinned

import "errors"

var (
	// ErrTxControl is returned for a statement inside a guarded transaction that would
	// end it, or commit implicitly.
	ErrTxControl = errors.New("dbguard: transaction control inside a guarded transaction")
	// ErrRowsOpen is returned while rows of an earlier query have not been closed. MySQL
	// takes no statement meanwhile, and nothing can be committed.
	ErrRowsOpen = errors.New("dbguard: rows of an earlier query are open: close them first")
	// ErrPanic poisons a transaction in whose statement the driver has panicked, or a value of
	// the program.
	ErrPanic = errors.New("dbguard: a statement has panicked")
)
