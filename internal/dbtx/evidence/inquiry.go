package evidence

import "github.com/belaygo/belay/dbguard"

// An inquiry is what is being found out about a conflict.
type inquiry struct {
	*dbguard.ConflictError
	suspects []*suspect
	resumed  bool // it was looked at behind a savepoint
	clean    bool // the transaction had written none of the suspects
	open     bool // the evidence is complete only after the rollback
	ownIndex bool // the index that refused the insert protects all of its rows
	doubtful bool // it is about some row of the database: it counts only if a suspect has changed
}

// weight orders the conflicts of a transaction: the proof of another writer weighs
// most, and a conflict that says nothing about other callers least.
func weight(e dbguard.Evidence) int {
	switch {
	case e.Changed:
		return 2
	case e.Unread, e.Found && !e.Expected:
		return 1
	}
	return 0
}
