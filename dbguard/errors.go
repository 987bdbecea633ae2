package dbguard

import (
	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/rowversion"
)

var (
	// ErrOutside is returned for a statement that has the context of a guarded transaction
	// but runs on another connection. It would not be rolled back with the transaction.
	ErrOutside = conflict.ErrOutside
	// ErrVersion is returned for a write that would bypass the versions of its model, and
	// for a row whose version is below 1 or at the limit of its column.
	ErrVersion = rowversion.ErrVersion
	// ErrUnprotectable is returned when no unique index of the table fits a row that is to
	// be protected, and for a write that has changed more rows than it was given.
	ErrUnprotectable = conflict.ErrUnprotectable
)
