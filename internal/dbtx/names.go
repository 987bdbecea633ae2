package dbtx

import (
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/journal"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/dbtx/protected"
)

// ErrTxControl is returned for a statement that would end its transaction; see
// [pinned.ErrTxControl].
var ErrTxControl = pinned.ErrTxControl

// Memory is what the attempts of one operation saw first of the rows that its key
// protects; see [protected.Memory].
type Memory = protected.Memory

// Outcome is what became of a transaction; see [journal.Outcome].
type Outcome = journal.Outcome

// What Resolve returns.
const (
	Unresolved   = journal.Unresolved
	Committed    = journal.Committed
	NotCommitted = journal.NotCommitted
)

// Retryable reports whether err says that the database has rolled a transaction
// back, or refused to begin it, because another one was in the way: a deadlock,
// a failed serialization, a busy SQLite, a migration of the table. The same
// transaction may succeed when it is run again.
func Retryable(err error) bool { return dialect.Retryable(err) }
