package evidence

import (
	"context"
	"slices"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/protected"
)

// examine reads the suspects twice: first plainly, all of them, and then as they are
// committed now.
func (j *Judge) examine(c *inquiry) error {
	ctx, cancel := j.Reader.Context()
	defer cancel()
	plain := make([]protected.Reading, len(c.suspects))
	for i, s := range c.suspects {
		var err error
		if plain[i], err = j.Reader.Read(ctx, s.row, c.Kind == conflict.Stale, ""); err != nil {
			return err
		}
		if s.clean && j.Reader.Session.Snapshot {
			j.Memory.See(s.row, plain[i])
		}
	}
	for i, s := range c.suspects {
		if err := j.examineOne(ctx, c, s, plain[i]); err != nil || c.proven(s) {
			return err
		}
	}
	j.countIndex(c)
	return nil
}

// examineOne compares the plain reading of a suspect with the row as it is committed
// now. After a duplicate among several rows it rereads only those that were not found.
func (j *Judge) examineOne(ctx context.Context, c *inquiry, s *suspect, plain protected.Reading) error {
	if !s.sure && !plain.Found { // a lock on a missing row would block others
		c.open = true
		return nil
	}
	now := plain
	if j.Reader.ReadsNewest() && (c.Kind == conflict.Stale || len(c.suspects) == 1 || !plain.Found) {
		var err error
		if now, err = j.Reader.ReadNow(ctx, s.row, c.Kind == conflict.Stale, plain); err != nil {
			return err
		}
	}
	changed := !now.Locked && (plain.ChangedTo(now) || s.clean && j.changedSinceFirst(s.row, now))
	s.expected = c.Kind == conflict.Stale && now.Found && now.Version == s.version(now)
	if !changed && (now.Locked || !s.clean) {
		c.open = true
		return nil
	}
	return j.note(ctx, c, s, now, changed)
}

// Complete completes the evidence of the open conflicts after the rollback. It reads by
// inNewTransaction, which runs a function in a new transaction, and in another one if the
// connection breaks. All writes of the transaction are undone, even those of triggers, so
// the rows are as others left them. Complete returns the error of inNewTransaction.
func (j *Judge) Complete(inNewTransaction func(func(context.Context) error) error) error {
	j.mu.Lock()
	open := slices.Clone(j.inquiries)
	j.mu.Unlock()
	open = slices.DeleteFunc(open, func(c *inquiry) bool { return !c.open || c.Evidence.Changed })
	if len(open) == 0 {
		return nil
	}
	err := inNewTransaction(func(ctx context.Context) error {
		open = slices.DeleteFunc(open, func(c *inquiry) bool {
			c.open = false
			return j.reread(ctx, c, c.suspects) == nil
		})
		return nil
	})
	for _, c := range open {
		c.open = false
		if c.clean && (c.ownIndex || c.Kind == conflict.Stale || !j.Reader.Dialect.Aborts) {
			// Neither a write of this transaction was in the way nor, as PostgreSQL names the
			// index, another row.
			j.unread(c)
		}
	}
	return err
}

// reread compares suspects with this operation's first readings.
func (j *Judge) reread(ctx context.Context, c *inquiry, suspects []*suspect) error {
	for _, s := range suspects {
		now, err := j.Reader.Read(ctx, s.row, c.Kind == conflict.Stale, "")
		if err != nil {
			return err
		}
		if err := j.note(ctx, c, s, now, j.changedSinceFirst(s.row, now)); err != nil || c.proven(s) {
			return err
		}
	}
	j.countIndex(c)
	return nil
}

// Resume rereads suspects of open conflicts when a rollback to a savepoint has made a
// transaction readable again: those that it has not written. It may still be committed.
func (j *Judge) Resume() {
	j.mu.Lock()
	conflicts := j.inquiries
	j.mu.Unlock()
	for _, c := range conflicts {
		if !c.open || c.resumed || c.Evidence.Changed {
			continue
		}
		c.resumed = true
		clean := slices.DeleteFunc(slices.Clone(c.suspects), func(s *suspect) bool { return j.Journal.Touched(s.row) })
		ctx, cancel := j.Reader.Context()
		err := j.reread(ctx, c, clean)
		cancel()
		if err == nil && c.Evidence.Changed {
			j.tx.Poison(c.Error)
		}
	}
}

// changedSinceFirst reports whether a row has changed since this operation saw it first.
func (j *Judge) changedSinceFirst(r *protected.Row, now protected.Reading) bool {
	first, seen := j.Memory.Recall(r)
	return seen && first.ChangedTo(now)
}
