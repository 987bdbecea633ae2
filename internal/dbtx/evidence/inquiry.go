package evidence

import (
	"slices"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/protected"
)

// An inquiry collects the evidence for one conflict.
type inquiry struct {
	*conflict.Error
	suspects []*suspect
	resumed  bool  // it was reread after the rollback to a savepoint
	clean    bool  // the transaction had not written any suspect
	open     bool  // the evidence is complete only after the rollback
	ownIndex bool  // the index that refused the insert protects all of its rows
	doubtful bool  // some row of the database was in conflict: it counts only if a suspect has changed
	of       []int // the calls whose rows were in conflict, where several share the transaction
}

// about notes the protected row of the conflict.
func (c *inquiry) about(r *protected.Row) {
	c.Columns, c.Key, c.Subject = r.Columns, r.Key, subject(r)
}

// subject returns the operation's relation to a protected row.
func subject(r *protected.Row) conflict.Subject {
	if r.Kept {
		return conflict.ClaimRow
	}
	return conflict.ProtectedRow
}

// byKey returns an inquiry into the conflict for each key that protects suspects, and one for
// the claims under it, or none if there is one of these.
func (c *inquiry) byKey() (each []*inquiry) {
	for _, s := range c.suspects {
		i := slices.IndexFunc(each, func(one *inquiry) bool {
			first := one.suspects[0].row
			return first.Key == s.row.Key && first.Kept == s.row.Kept
		})
		if i < 0 {
			own := *c.Error
			each = append(each, &inquiry{Error: &own, open: c.open, doubtful: c.doubtful})
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
// most, and a conflict without a trace of other callers least.
func weight(e conflict.Evidence) int {
	switch {
	case e.Changed:
		return 2
	case e.Unread, e.Found && !e.Expected:
		return 1
	}
	return 0
}

// proven reports whether no more suspects need to be examined after s. Calls that share
// the transaction each get the conflicts of their own rows.
func (c *inquiry) proven(s *suspect) bool { return c.Evidence.Changed && s.row.Of == 0 }
