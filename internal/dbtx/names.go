package dbtx

import (
	"errors"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/journal"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/dbtx/protected"
)

// ErrTxControl is returned for a statement that would end its transaction; see
// [pinned.ErrTxControl].
var ErrTxControl = pinned.ErrTxControl

// Memory keeps an operation's first readings of its protected rows; see
// [protected.Memory].
type Memory = protected.Memory

// Outcome is the outcome of a transaction; see [journal.Outcome].
type Outcome = journal.Outcome

// Outcomes that Resolve returns.
const (
	Unresolved   = journal.Unresolved
	Committed    = journal.Committed
	NotCommitted = journal.NotCommitted
)

// Retryable reports whether a transaction that ended with err may succeed when it is run
// again; see [dialect.Retryable].
func Retryable(err error) bool { return dialect.Retryable(err) }

// Transient reports whether the same transaction may succeed a moment later: after
// ErrNoConnection, and see [dialect.Transient].
func Transient(err error) bool { return errors.Is(err, ErrNoConnection) || dialect.Transient(err) }
