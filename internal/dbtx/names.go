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

// Retryable reports whether a transaction that ended with err may succeed when it is run
// again; see [dialect.Retryable].
func Retryable(err error) bool { return dialect.Retryable(err) }
