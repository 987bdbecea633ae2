package dbtx

import (
	"context"

	"github.com/belaygo/belay/internal/dbtx/protected"
)

// lookAfterDeadlock notes which of the rows that were to be inserted are not there.
// A writer that inserts one from now on does so while this caller has the lock.
func (t *Tx) lookAfterDeadlock(rows []*protected.Row) {
	t.ending.Lock()
	defer t.ending.Unlock()
	if t.dialect.Aborts || t.hasEnded() {
		return
	}
	_ = t.afresh(func(ctx context.Context) error {
		t.judge.NoteMissing(ctx, rows)
		return nil
	})
}
