package dbtx

import (
	"context"
	"database/sql"
	"errors"

	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/sqldb"
)

// Send inserts messages in the transaction, and counts as a write that is neither evidence nor
// cover. They belong to the innermost savepoint. An error of the database poisons the
// transaction: what it writes must not be committed without its messages.
func (t *Tx) Send(ctx context.Context, rows []message.Row) error {
	if err := t.conn.Take(ctx); err != nil {
		return err
	}
	defer t.conn.Give()
	if t.conn.SettleAll() {
		return pinned.ErrRowsOpen
	}
	_ = t.LeaveRoutine() // which poisons
	if err := t.usable(); err != nil {
		return err
	}
	if t.conn.Session.MarksWrites() {
		if err := t.mark(); err != nil {
			return err
		}
	}
	d, _ := sqldb.Of(t.dialect.Name)
	c := &counting{conn: last{t}}
	var err error
	t.conn.Watch(func() { err = message.Insert(ctx, c, d, rows) })
	switch {
	case errors.Is(err, message.ErrInvalid): // nothing was sent
		return err
	case err != nil:
		t.Learn(err)
		t.Poison(err)
		return err
	}
	t.journal.NoteMessages(message.Table, c.rows == 0)
	return nil
}

// counting counts the rows that its statements have written.
type counting struct {
	conn Execer
	rows int64
}

// ExecContext implements message.Execer.
func (c *counting) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	res, err := c.conn.ExecContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	n, err := res.RowsAffected()
	if err != nil {
		n = 1 // it may have written
	}
	c.rows += n
	return res, nil
}
