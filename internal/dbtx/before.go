package dbtx

import (
	"context"

	"github.com/belaygo/belay/internal/dbtx/protected"
)

// lookBefore reads a row when it becomes protected, where no snapshot can be read after
// a conflict.
func (t *Tx) lookBefore(r *protected.Row) error {
	if t.conn.Session.Snapshot && !t.conn.Session.RefusesChanged || t.journal.Touched(r) {
		return nil
	}
	ctx, cancel := t.reader.Context()
	defer cancel()
	now, err := t.reader.Read(ctx, r, true, "")
	if err != nil {
		t.learn(err)
		return err
	}
	t.memory.See(r, now)
	return nil
}

// seeBefore notes how a row was before the marked statement, as the statement's success
// proves. It proves nothing if the transaction may have written the row earlier.
func (t *Tx) seeBefore(r *protected.Row, was protected.Reading) {
	if !t.journal.TouchedBefore(r) {
		t.memory.See(r, was)
	}
}

// lookAfterDeadlock notes which of the rows that were to be inserted are not there.
// A writer that inserts one from now on does so while this caller has the lock.
func (t *Tx) lookAfterDeadlock(rows []*protected.Row) {
	t.ending.Lock()
	defer t.ending.Unlock()
	if t.dialect.Aborts || t.hasEnded() {
		return
	}
	_ = t.afresh(func(ctx context.Context) error {
		for _, r := range rows {
			if now, err := t.reader.Read(ctx, r, false, ""); err == nil && !now.Found {
				t.memory.See(r, now)
			}
		}
		return nil
	})
}
