package dbtx

import (
	"context"
	"slices"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx/protected"
)

// judge collects the evidence for a conflict, and keeps it. The conflict remains open
// until the rollback if the transaction takes no reads, or has written what it would
// read.
func (t *Tx) judge(c *inquiry) {
	if len(c.suspects) == 0 {
		return
	}
	c.Evidence.Protected = true
	c.Columns = c.suspects[0].row.Columns()
	c.clean = true
	for _, s := range c.suspects {
		s.clean = !t.journal.Touched(s.row)
		c.clean = c.clean && s.clean
	}
	if c.Err != nil && t.dialect.Aborts || t.examine(c) != nil {
		c.open = true
	}
	t.keep(c)
}

// doubt opens a conflict for a statement that was refused because a row has changed
// since the snapshot. As that may be any row, all protected ones are suspects.
func (t *Tx) doubt(err error) {
	c := &inquiry{Conflict: &dbguard.Conflict{Kind: dbguard.Stale, Err: err}, open: true, doubtful: true}
	t.mu.Lock()
	protected := t.rows.All()
	t.mu.Unlock()
	for _, r := range protected {
		if first, seen := t.memory.Recall(r); seen {
			c.suspects = append(c.suspects, &suspect{row: r, sure: true, loaded: []loadedKey{{version: first.Version}}})
		}
	}
	if len(c.suspects) > 0 {
		c.Evidence.Protected = true
		c.Table, c.Columns = c.suspects[0].row.Table, c.suspects[0].row.Columns()
		t.keep(c)
	}
}

// keep adds a conflict to those of the transaction, which a proof poisons.
func (t *Tx) keep(c *inquiry) {
	if c.Evidence.Changed {
		t.poisonWith(c.Conflict)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c.Key = t.key
	c.Evidence.Shared = c.Evidence.Shared || t.rows.Several()
	t.inquiries = append(t.inquiries, c)
}

// Conflict returns the weightiest conflict on a protected row so far, or nil. Its
// evidence is complete after Rollback.
func (t *Tx) Conflict() (weightiest *dbguard.Conflict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.inquiries {
		if c.doubtful && !c.Evidence.Changed {
			continue
		}
		if weightiest == nil || weight(c.Evidence) > weight(weightiest.Evidence) {
			weightiest = c.Conflict
		}
	}
	return weightiest
}

// examine reads the suspects twice: first plainly, all of them, and then as they are
// committed now.
func (t *Tx) examine(c *inquiry) error {
	ctx, cancel := t.reader.Context()
	defer cancel()
	plain := make([]protected.Reading, len(c.suspects))
	for i, s := range c.suspects {
		var err error
		if plain[i], err = t.reader.Read(ctx, s.row, c.Kind == dbguard.Stale, ""); err != nil {
			return err
		}
		if s.clean && t.conn.Session.Snapshot {
			t.memory.See(s.row, plain[i])
		}
	}
	for i, s := range c.suspects {
		if err := t.examineOne(ctx, c, s, plain[i]); err != nil || c.Evidence.Changed {
			return err
		}
	}
	t.countIndex(c)
	return nil
}

// examineOne compares a suspect as it was read plainly with what is committed now. After
// a duplicate among several rows it reads anew only those that were not found.
func (t *Tx) examineOne(ctx context.Context, c *inquiry, s *suspect, plain protected.Reading) error {
	if !s.sure && !plain.Found { // a lock on what is not there would stop others
		c.open = true
		return nil
	}
	now := plain
	if t.reader.ReadsNewest() && (c.Kind == dbguard.Stale || len(c.suspects) == 1 || !plain.Found) {
		var err error
		if now, err = t.reader.ReadNow(ctx, s.row, c.Kind == dbguard.Stale, plain); err != nil {
			return err
		}
	}
	changed := !now.Locked && (plain.ChangedTo(now) || s.clean && t.changedSinceFirst(s.row, now))
	s.expected = c.Kind == dbguard.Stale && now.Found && now.Version == s.version(now)
	if !changed && (now.Locked || !s.clean) {
		c.open = true
		return nil
	}
	return t.note(ctx, c, s, now, changed)
}

// complete completes the evidence of the open conflicts after the rollback. All that the
// transaction wrote is gone, even by triggers, so the rows are as others left them.
func (t *Tx) complete() {
	t.mu.Lock()
	open := slices.Clone(t.inquiries)
	t.mu.Unlock()
	open = slices.DeleteFunc(open, func(c *inquiry) bool { return !c.open || c.Evidence.Changed })
	if len(open) == 0 {
		return
	}
	unread := open
	_ = t.afresh(func(ctx context.Context) error {
		unread = nil
		for _, c := range open {
			c.open = false
			if err := t.reread(ctx, c, c.suspects); err != nil {
				unread = append(unread, c)
			}
		}
		return nil
	})
	for _, c := range unread {
		c.open = false
		if c.clean && (c.ownIndex || c.Kind == dbguard.Stale || !t.dialect.Aborts) {
			// No write of its own was in the way, nor, as PostgreSQL names the index, another row.
			t.unread(c)
		}
	}
}

// reread compares suspects with what this operation saw first.
func (t *Tx) reread(ctx context.Context, c *inquiry, suspects []*suspect) error {
	for _, s := range suspects {
		now, err := t.reader.Read(ctx, s.row, c.Kind == dbguard.Stale, "")
		if err != nil {
			return err
		}
		if err := t.note(ctx, c, s, now, t.changedSinceFirst(s.row, now)); err != nil || c.Evidence.Changed {
			return err
		}
	}
	t.countIndex(c)
	return nil
}

// resume rereads suspects of open conflicts when a rollback to a savepoint has made a
// transaction take reads again: those that it has not written. It may yet be committed.
func (t *Tx) resume() {
	t.mu.Lock()
	conflicts := t.inquiries
	t.mu.Unlock()
	for _, c := range conflicts {
		if !c.open || c.resumed || c.Evidence.Changed {
			continue
		}
		c.resumed = true
		clean := slices.DeleteFunc(slices.Clone(c.suspects), func(s *suspect) bool { return !s.clean })
		ctx, cancel := t.reader.Context()
		err := t.reread(ctx, c, clean)
		cancel()
		if err == nil && c.Evidence.Changed {
			t.poisonWith(c.Conflict)
		}
	}
}

// changedSinceFirst reports whether a row has changed since this operation saw it first.
func (t *Tx) changedSinceFirst(r *protected.Row, now protected.Reading) bool {
	first, seen := t.memory.Recall(r)
	return seen && first.ChangedTo(now)
}

// note makes evidence of a suspect as it was read, if it changed or the statement met it.
func (t *Tx) note(ctx context.Context, c *inquiry, s *suspect, now protected.Reading, changed bool) error {
	if !changed {
		met, err := t.met(ctx, c, s, now)
		if !met || err != nil {
			return err
		}
	}
	version := s.version(now)
	e := dbguard.Evidence{
		Protected:    true,
		Found:        now.Found,
		Changed:      changed,
		Shared:       c.Evidence.Shared || s.row.Followed || t.reader.SpelledOtherwise(t.key, s.row, now, s.row.Values),
		Expected:     c.Kind == dbguard.Stale && now.Found && s.asExpected(now.Version, version),
		Version:      version,
		FoundVersion: now.Version,
	}
	if changed && !now.Found && t.reader.Facts(s.row.Table).Cascades {
		e.Shared = true // with the key of the row that it was deleted with
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !c.Evidence.Found || weight(e) > weight(c.Evidence) {
		c.Evidence, c.Columns = e, s.row.Columns()
	}
	return nil
}

// met reports whether the row that was read is one of the statement's.
func (t *Tx) met(ctx context.Context, c *inquiry, s *suspect, now protected.Reading) (bool, error) {
	switch {
	case c.doubtful, !now.Found:
		return false, nil
	case !s.sure && s.loadedAs(now) == nil:
		if s.ask == nil {
			return false, nil
		}
		row, err := s.row.Load(t.reader.DB(ctx).Select(s.row.Columns()).Where(s.ask), s.row.Schema.ModelType, "")
		if err != nil || !row.IsValid() {
			return false, err
		}
	}
	for _, given := range s.given {
		if !t.reader.SpelledOtherwise(t.key, s.row, now, given) {
			return true, nil
		}
	}
	if len(s.given) > 0 {
		c.ownIndex = false // the index refused a row of another key
	}
	return len(s.given) == 0, nil
}

// countIndex notes that a row is there which no read finds, if its own index refused the
// insert. The database keeps the row in another form than it was given, or hides it.
func (t *Tx) countIndex(c *inquiry) {
	if c.ownIndex && c.clean && !c.open && !c.Evidence.Found && !c.Evidence.Changed {
		t.unread(c)
	}
}

func (t *Tx) unread(c *inquiry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.Evidence.Unread = true
}
