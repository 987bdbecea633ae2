package dbguard

import "github.com/belaygo/belay/internal/conflict"

// Kind is how the database refused a write.
type Kind = conflict.Kind

const (
	Duplicate = conflict.Duplicate // an INSERT met an existing row
	Stale     = conflict.Stale     // an UPDATE or DELETE by version matched fewer rows than it named
)

// A Subject is the relation of an operation to the row that refused its write.
type Subject = conflict.Subject

const (
	OtherRow     = conflict.OtherRow     // no key of the operation protects it
	ProtectedRow = conflict.ProtectedRow // the Key of the ConflictError protects it, if the Evidence has found it
	ClaimRow     = conflict.ClaimRow     // the claim of the operation's request, which has taken effect before
)

// A ConflictError reports a write that the database refused: its Kind and Table, the Columns
// that identify a protected row and the Key that protects it, the row's Subject, the Evidence,
// and Err, the driver's error. A Duplicate matches gorm.ErrDuplicatedKey, and errors.As finds
// the driver's error. The text names tables and columns, never values.
type ConflictError = conflict.Error

// Evidence is the known facts about the row of a conflict: whether it is Protected, whether it
// was Found, and whether another writer has Changed it since this caller had the lock. It is
// complete when the transaction has ended. It is zero unless the row is protected.
type Evidence = conflict.Evidence
