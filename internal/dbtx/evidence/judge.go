package evidence

import (
	"cmp"
	"slices"
	"sync"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/journal"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/reader"
	"github.com/belaygo/belay/internal/dbtx/statement"
)

// A Judge collects the evidence for the conflicts of a transaction. It is safe for
// concurrent use.
type Judge struct {
	Reader  *reader.Reader
	Rows    *protected.Rows   // that the keys protect
	Journal *journal.Journal  // of the transaction
	Memory  *protected.Memory // of the operation
	tx      transaction
	looks   []look // that had waited, and are not judged yet

	mu        sync.Mutex
	inquiries []*inquiry // into conflicts on protected rows
}

// A transaction is what is judged.
type transaction interface {
	Poison(err error) // keeps it from being committed
}

// Init is called once, before all others.
func (j *Judge) Init(q *reader.Reader, rows *protected.Rows, writes *journal.Journal, m *protected.Memory, t transaction) {
	j.Reader, j.Rows, j.Journal, j.Memory, j.tx = q, rows, writes, m, t
}

// Duplicate returns the conflict of an INSERT that was refused with err.
func (j *Judge) Duplicate(w *statement.Write, err error) *conflict.Error {
	c := &inquiry{
		Error:    &conflict.Error{Kind: conflict.Duplicate, Table: w.Table, Err: err},
		suspects: j.suspectsOfInsert(w),
	}
	c.ownIndex = j.firedOwnIndex(c, w.Given)
	j.judge(c)
	return c.Error
}

// Stale collects the evidence for the conflict of an UPDATE or DELETE that matched fewer
// rows than it expected.
func (j *Judge) Stale(w *statement.Write, c *conflict.Error) {
	j.judge(&inquiry{Error: c, suspects: j.suspectsOfUpdate(w)})
}

// judge collects the evidence for a conflict. The row of one key must not hide the evidence
// of another key's row, so a conflict on rows of several keys is also one of each key.
func (j *Judge) judge(c *inquiry) {
	if len(c.suspects) == 0 {
		return
	}
	each := c.byKey()
	j.inquire(c)
	for _, one := range each {
		j.inquire(one)
	}
}

// inquire collects the evidence for a conflict, and keeps it. The conflict remains open
// until the rollback if the transaction takes no reads, or has written the rows to
// read.
func (j *Judge) inquire(c *inquiry) {
	c.Evidence.Protected = true
	c.about(c.suspects[0].row)
	touched := j.Journal.Touched
	if c.Kind == conflict.Stale { // the statement that has matched no row does not count
		touched = j.Journal.TouchedBefore
	}
	c.clean = true
	for _, s := range c.suspects {
		s.clean = !touched(s.row)
		c.clean = c.clean && s.clean
	}
	if c.Err != nil && j.Reader.Dialect.Aborts || j.examine(c) != nil {
		c.open = true
	}
	j.keep(c)
}

// Doubt opens a conflict for a statement that was refused because a row has changed
// since the snapshot. As that may be any row, all protected ones are suspects.
func (j *Judge) Doubt(err error) {
	c := &inquiry{Error: &conflict.Error{Kind: conflict.Stale, Err: err}, open: true, doubtful: true}
	for _, r := range j.Rows.All() {
		if first, seen := j.Memory.Recall(r); seen {
			c.suspects = append(c.suspects, &suspect{row: r, sure: true, loaded: []loadedKey{{version: first.Version}}})
		}
	}
	if len(c.suspects) > 0 {
		c.Evidence.Protected = true
		c.about(c.suspects[0].row)
		c.Table = c.suspects[0].row.Table
		j.keep(c)
		for _, one := range c.byKey() {
			one.about(one.suspects[0].row)
			j.keep(one)
		}
	}
}

// keep adds a conflict to those of the transaction, which a proof poisons.
func (j *Judge) keep(c *inquiry) {
	if c.Evidence.Changed {
		j.tx.Poison(c.Error)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	c.Evidence.Shared = c.Evidence.Shared || j.Rows.Several(c.Key)
	j.inquiries = append(j.inquiries, c)
}

// Conflicts returns the weightiest conflict on a row of each key so far, and on a claim under
// it, the weightiest of all first. Their evidence is complete after Complete.
func (j *Judge) Conflicts() (weightiest []*conflict.Error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.inquiries {
		if c.doubtful && !c.Evidence.Changed {
			continue
		}
		switch i := slices.IndexFunc(weightiest, func(w *conflict.Error) bool { return w.Key == c.Key && w.Subject == c.Subject }); {
		case i < 0:
			weightiest = append(weightiest, c.Error)
		case weight(c.Evidence) > weight(weightiest[i].Evidence):
			weightiest[i] = c.Error
		}
	}
	slices.SortStableFunc(weightiest, func(a, b *conflict.Error) int {
		return cmp.Compare(weight(b.Evidence), weight(a.Evidence))
	})
	return weightiest
}

// Of returns the numbers of the calls whose rows were in conflict, or nil if a shared row
// was.
func (j *Judge) Of() (calls []int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.inquiries {
		calls = append(calls, c.of...)
	}
	slices.Sort(calls)
	if calls = slices.Compact(calls); slices.Contains(calls, 0) {
		return nil
	}
	return calls
}
