package conflict

import "errors"

// The errors are those of dbguard.
var (
	ErrOutside       = errors.New("dbguard: statement outside the guarded transaction: use the tx and the ctx that the operation is given")
	ErrUnprotectable = errors.New("dbguard: row can't be protected")
)
