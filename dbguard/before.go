package dbguard

import "errors"

// compareBefore judges a duplicate where the transaction takes no reads after
// it, by what the row was when this caller had the lock. The rest is found out
// after the rollback.
func (t *Tx) compareBefore(c *Conflict, rows []*protectedRow) {
	fired := t.firedIndex(c)
	sure := t.sureOfOthers(c, fired, rows)
	for _, r := range rows {
		if r.before == nil { // its transaction has written it before it was protected
			c.Evidence.Unread = true
			continue
		}
		own := t.wrote(r, Duplicate)
		if !r.before.found && (!sameColumns(fired, r.columns()) || !own && !sure) {
			continue // another index, or another row
		}
		now := reading{found: true, key: r.before.key, version: r.before.version}
		before := *r.before
		if own {
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

// sureOfOthers reports whether the duplicate must be one that somebody else has
// made since: no row that was inserted was there before.
func (t *Tx) sureOfOthers(c *Conflict, fired []string, rows []*protectedRow) bool {
	missing := make(map[string]bool)
	for _, r := range rows {
		if !sameColumns(fired, r.columns()) {
			continue
		}
		if r.before == nil || r.before.found || t.wrote(r, Duplicate) {
			return false
		}
		missing[r.identity()] = true
	}
	return len(missing) == c.inserted
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

// seeBefore notes what the marked statement proves of a row by its success: how it
// was before. It proves nothing if the transaction had written the row earlier.
func (t *Tx) seeBefore(r *protectedRow, was reading) {
	t.mu.Lock()
	earlier := t.wroteEarlier(r, Stale) || t.wroteEarlier(r, Duplicate)
	t.mu.Unlock()
	if !earlier {
		t.memory.see(r, was)
	}
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
	protected := t.protected.all
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
