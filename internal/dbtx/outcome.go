package dbtx

import "github.com/belaygo/belay/internal/dbtx/journal"

// Outcome is what became of a transaction; see [journal.Outcome].
type Outcome = journal.Outcome

// What Resolve returns.
const (
	Unresolved   = journal.Unresolved
	Committed    = journal.Committed
	NotCommitted = journal.NotCommitted
)
