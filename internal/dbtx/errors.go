package dbtx

import "errors"

// ErrCommitUnknown is returned by Commit when it is not known whether the transaction was
// committed.
var ErrCommitUnknown = errors.New("dbguard: outcome of the commit is unknown")
