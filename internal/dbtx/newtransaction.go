package dbtx

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/belaygo/belay/internal/dbtx/pinned"
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
	t.settings = append(t.settings, func(ctx context.Context, c *sql.Conn) error {
		_, err := c.ExecContext(ctx, query, args...)
		return err
	})
}

// inNewTransaction runs f in a new transaction after the end of this one, whose settings it
// repeats and whose writes it does not see. If the connection is broken, or breaks meanwhile, f
// runs on another one. That takes at most Options.EndTimeout, and the first connection at most
// half of it.
func (t *Tx) inNewTransaction(f func(context.Context) error) error {
	ctx, cancel := t.reader.Context()
	defer cancel()
	if !t.conn.Broken.Load() {
		first, cancel := context.WithTimeout(ctx, t.options.EndTimeout/2)
		defer cancel()
		if err := t.beginOn(first, t.conn, f); !t.conn.Broken.Load() {
			return err
		}
	}
	conn, err := t.elsewhere(ctx)
	if err != nil {
		return err
	}
	defer conn.Free()
	conn.Watch(func() { err = t.beginOn(ctx, conn, f) })
	return err
}

// beginOn runs f in a new transaction on a connection, which it discards if that breaks. A
// proxy may send a read outside of a transaction to a replica that is behind.
func (t *Tx) beginOn(ctx context.Context, conn *pinned.Conn, f func(context.Context) error) error {
	if _, err := conn.SQL().ExecContext(ctx, "BEGIN"); err != nil {
		conn.Discard()
		return err
	}
	t.mu.Lock()
	settings := slices.Clone(t.settings)
	t.mu.Unlock()
	var err error
	for _, set := range settings {
		if err == nil {
			err = set(ctx, conn.SQL())
		}
	}
	if err == nil {
		err = f(ctx)
	}
	end := "ROLLBACK"
	if err == nil && t.dialect.Barrier != nil {
		var waits bool
		if waits, err = t.dialect.Barrier(ctx, conn.SQL()); waits {
			end = "COMMIT"
		}
	}
	if _, ended := conn.SQL().ExecContext(ctx, end); ended != nil {
		conn.Discard()
		return errors.Join(err, ended)
	}
	return err
}

// elsewhere makes the reader use another connection to the same server, and returns it.
func (t *Tx) elsewhere(ctx context.Context) (*pinned.Conn, error) {
	c, _, err := t.reconnect(ctx)
	if err != nil {
		return nil, err
	}
	t.reader.Use(t.front.On(c), c)
	return pinned.New(c), nil
}

// lookAfterDeadlock notes which of the rows that were to be inserted are not there.
// A writer that inserts one from now on does so while this caller has the lock.
func (t *Tx) lookAfterDeadlock(rows []*protected.Row) {
	if t.dialect.Aborts || t.conn.Take(t.ctx) != nil {
		return
	}
	defer t.conn.Give()
	t.lookNow(rows)
}

// lookNow does so for a caller that has the turn.
func (t *Tx) lookNow(rows []*protected.Row) {
	if t.dialect.Aborts || t.hasEnded() {
		return
	}
	_ = t.inNewTransaction(func(ctx context.Context) error {
		t.judge.NoteMissing(ctx, rows)
		return nil
	})
}
