package dbtx

import (
	"context"
	"database/sql"
	"slices"

	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
)

// adjusted keeps a statement that changes which rows are visible, for inNewTransaction.
func (t *Tx) adjusted(query string, args []any, statements []sqltext.Statement) {
	if t.dialect.Name != "postgres" || len(statements) != 1 || !statements[0].ChangesVisibility() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settings = append(t.settings, func(ctx context.Context) error {
		_, err := t.conn.SQL.ExecContext(ctx, query, args...)
		return err
	})
}

// inNewTransaction runs f in a new transaction after the end of this one, whose settings it
// repeats and whose writes it does not see. A proxy may send a read outside of a
// transaction to a replica that is behind.
func (t *Tx) inNewTransaction(f func(context.Context) error) error {
	if t.conn.Broken {
		return sql.ErrConnDone
	}
	ctx, cancel := t.reader.Context()
	defer cancel()
	if _, err := t.conn.SQL.ExecContext(ctx, "BEGIN"); err != nil {
		t.conn.Discard()
		return err
	}
	t.mu.Lock()
	settings := t.settings
	t.mu.Unlock()
	var err error
	for _, step := range append(slices.Clone(settings), f) {
		if err == nil {
			err = step(ctx)
		}
	}
	if rollback := t.exec("ROLLBACK"); rollback != nil {
		t.conn.Discard()
		return rollback
	}
	return err
}

// lookAfterDeadlock notes which of the rows that were to be inserted are not there.
// A writer that inserts one from now on does so while this caller has the lock.
func (t *Tx) lookAfterDeadlock(rows []*protected.Row) {
	t.ending.Lock()
	defer t.ending.Unlock()
	if t.dialect.Aborts || t.hasEnded() {
		return
	}
	_ = t.inNewTransaction(func(ctx context.Context) error {
		t.judge.NoteMissing(ctx, rows)
		return nil
	})
}
