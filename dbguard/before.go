package dbguard

import "errors"

// compareBefore judges a duplicate where the transaction takes no reads after
// it, by what the row was when this caller had the lock. The rest is found out
// after the rollback.
func (t *Tx) compareBefore(c *Conflict, rows []*protectedRow) {
	fired := t.firedIndex(c)
	for _, r := range rows {
		if r.before == nil { // its transaction has written it before it was protected
			c.Evidence.Unread = true
			continue
		}
		if !r.before.found && !sameColumns(fired, r.columns()) {
			continue // another index
		}
		now := reading{found: true, key: r.before.key, version: r.before.version}
		before := *r.before
		if t.wrote(r, Duplicate) {
			before = now
		}
		if t.weigh(c, r, before, now); c.Evidence.overlap() {
			return
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unread = rows
}

// readUnread reads what could not be read at the conflict. The transaction has
// ended.
func (t *Tx) readUnread() {
	c := t.Conflict()
	if c == nil || c.Kind != Duplicate || c.Evidence.overlap() {
		return
	}
	ctx, cancel := t.judging()
	defer cancel()
	for _, r := range t.unread {
		now, err := t.read(ctx, r, false, "")
		if err != nil || r.before == nil || t.wrote(r, Duplicate) {
			continue
		}
		if t.weigh(c, r, *r.before, now); c.Evidence.overlap() {
			return
		}
	}
}

// lookBefore reads a row when it becomes protected, where there is no snapshot.
func (t *Tx) lookBefore(r *protectedRow) error {
	if t.conn.session.snapshot || t.wrote(r, Duplicate) {
		return nil
	}
	ctx, cancel := t.judging()
	defer cancel()
	now, err := t.read(ctx, r, true, "")
	if err != nil {
		t.learn(err)
		return err
	}
	r.before = &now
	t.memory.see(r, now)
	return nil
}

// lookAfterDeadlock notes which of the rows that were to be inserted are not
// there: who makes them from now on does it while this caller has the lock. The
// server has ended the transaction, so each read stands alone.
func (t *Tx) lookAfterDeadlock(rows []*protectedRow) {
	if t.dialect.aborts {
		return
	}
	ctx, cancel := t.judging()
	defer cancel()
	for _, r := range rows {
		if now, err := t.read(ctx, r, false, ""); err == nil && !now.found {
			t.memory.see(r, now)
		}
	}
}

// changed finds out whether the row that MariaDB has refused, because it changed
// since the snapshot, is one that this operation had seen. The server has ended
// the transaction, so each read stands alone.
func (t *Tx) changed(err error) *Conflict {
	if _, judged := errors.AsType[*Conflict](err); judged || mysqlNumber(err) != erCheckRead {
		return nil
	}
	t.mu.Lock()
	protected := t.protected
	t.mu.Unlock()
	ctx, cancel := t.judging()
	defer cancel()
	for _, r := range protected {
		first, seen := t.memory.recall(r)
		if !seen {
			continue
		}
		now, readErr := t.read(ctx, r, true, "")
		if readErr != nil || !first.contradicts(now) {
			continue
		}
		c := &Conflict{Kind: Stale, Table: r.table, Columns: r.columns(), err: err}
		c.Evidence = Evidence{Protected: true, Found: now.found, Contradicts: true, Version: first.version, FoundVersion: now.version}
		t.keep(c)
		return c
	}
	return nil
}
