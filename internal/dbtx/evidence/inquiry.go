package evidence

import (
	"slices"

	"github.com/belaygo/belay/dbguard"
)

// An inquiry is what is being found out about a conflict.
type inquiry struct {
	*dbguard.ConflictError
	suspects []*suspect
	resumed  bool  // it was looked at behind a savepoint
	clean    bool  // the transaction had written none of the suspects
	open     bool  // the evidence is complete only after the rollback
	ownIndex bool  // the index that refused the insert protects all of its rows
	doubtful bool  // it is about some row of the database: it counts only if a suspect has changed
	of       []int // the calls whose rows it is about, where several share the transaction
}

// byKey returns an inquiry into the conflict for each key that protects suspects, or none
// if there is one key.
func (c *inquiry) byKey() (each []*inquiry) {
	for _, s := range c.suspects {
		i := slices.IndexFunc(each, func(one *inquiry) bool { return one.suspects[0].row.Key == s.row.Key })
		if i < 0 {
			conflict := *c.ConflictError
			each = append(each, &inquiry{ConflictError: &conflict, open: c.open, doubtful: c.doubtful})
			i = len(each) - 1
		}
		each[i].suspects = append(each[i].suspects, s)
	}
	if len(each) == 1 {
		return nil
	}
	return each
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

// proven reports whether no more suspects need to be looked at after s. Of several calls
// each is told what it has met itself.
func (c *inquiry) proven(s *suspect) bool { return c.Evidence.Changed && s.row.Of == 0 }
