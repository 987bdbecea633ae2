package dbtx

import "github.com/belaygo/belay/internal/dbtx/dialect"

// Retryable reports whether err says that the database has rolled a transaction
// back, or refused to begin it, because another one was in the way: a deadlock,
// a failed serialization, a busy SQLite, a migration of the table. The same
// transaction may succeed when it is run again.
func Retryable(err error) bool { return dialect.Retryable(err) }
