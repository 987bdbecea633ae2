package dbguard

import "github.com/belaygo/belay/internal/conflict"

// Kind is how the database refused a write.
type Kind = conflict.Kind

const (
	Duplicate = conflict.Duplicate // an INSERT met an existing row
	Stale     = conflict.Stale     // an UPDATE or DELETE by version matched fewer rows than it named
)

// A ConflictError reports a write that the database refused: its Kind and Table, the Columns
// that identify a protected row and the Key that protects it (empty if none does), the Evidence,
// and Err, the driver's error. A Duplicate matches gorm.ErrDuplicatedKey, and errors.As finds
// the driver's error. The text names tables and columns, never values.
type ConflictError = conflict.Error

// Evidence is the known facts about the row of a conflict: whether it is Protected, whether it
// was Found, and whether another writer has Changed it since this caller had the lock. It is
// complete when the transaction has ended. It is zero unless the row is protected.
type Evidence = conflict.Evidence
