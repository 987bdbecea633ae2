package pgxguard

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/belaygo/belay/internal/sqlfront"
)

// tx is the transaction of an operation, or one that was begun in it.
type tx struct {
	s    *session
	in   *sqlfront.Savepoint // nil for the operation's own
	done bool                // of one that was begun in it
}

// Begin implements pgx.Tx. It sets a savepoint.
func (t *tx) Begin(ctx context.Context) (pgx.Tx, error) {
	if t.done {
		return nil, pgx.ErrTxClosed
	}
	in, err := t.s.t.Save(func(query string) error { return t.run(ctx, query) })
	if err != nil {
		return nil, err
	}
	return &tx{s: t.s, in: in}, nil
}

func (t *tx) run(ctx context.Context, query string) error {
	_, err := t.Exec(ctx, query)
	return err
}

// Commit implements pgx.Tx.
func (t *tx) Commit(ctx context.Context) error {
	return t.end(ctx, "Commit", (*sqlfront.Savepoint).Release)
}

// Rollback implements pgx.Tx.
func (t *tx) Rollback(ctx context.Context) error {
	return t.end(ctx, "Rollback", (*sqlfront.Savepoint).Undo)
}

// end ends a transaction that was begun in the operation by a method of its savepoint.
func (t *tx) end(ctx context.Context, call string, by func(*sqlfront.Savepoint, func(query string) error) error) error {
	switch {
	case t.done || t.s.t.Ending():
		return pgx.ErrTxClosed
	case t.in == nil:
		return t.s.t.Refuse(call)
	}
	err := by(t.in, func(query string) error { return t.run(ctx, query) })
	t.done = true
	return err
}

// Exec implements pgx.Tx.
func (t *tx) Exec(ctx context.Context, query string, args ...any) (tag pgconn.CommandTag, err error) {
	if t.done {
		return tag, pgx.ErrTxClosed
	}
	q, err := t.s.read(ctx, query, args)
	if err != nil {
		return tag, err
	}
	_, err = t.s.send(ctx, t.in, q, func(ctx context.Context) (int64, bool, error) {
		var err error
		tag, err = t.s.conn.Exec(ctx, q.sql, q.args...)
		return affected(tag, err), false, err
	})
	return tag, err
}

// affected returns how many rows a statement has written, or -1.
func affected(tag pgconn.CommandTag, err error) int64 {
	if err != nil {
		return -1
	}
	return tag.RowsAffected()
}

// Query implements pgx.Tx.
func (t *tx) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	r, err := t.query(ctx, query, args)
	return r, err
}

// QueryRow implements pgx.Tx.
func (t *tx) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	r, _ := t.query(ctx, query, args)
	return row{r}
}

// query sends a query that returns rows. With an error the rows are closed, and have it.
func (t *tx) query(ctx context.Context, query string, args []any) (*rows, error) {
	if t.done {
		return failed(pgx.ErrTxClosed), pgx.ErrTxClosed
	}
	q, err := t.s.read(ctx, query, args)
	if err != nil {
		return failed(err), err
	}
	r := &rows{s: t.s}
	r.sent, err = t.s.send(ctx, t.in, q, func(ctx context.Context) (int64, bool, error) {
		var err error
		r.in, err = t.s.conn.Query(ctx, q.sql, q.args...)
		return -1, err == nil, err
	})
	if err != nil {
		return failed(err), err
	}
	t.s.t.Opened(r, r.Close)
	return r, nil
}

// CopyFrom implements pgx.Tx.
func (t *tx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, source pgx.CopyFromSource) (n int64, err error) {
	if t.done {
		return 0, pgx.ErrTxClosed
	}
	names := make([]string, len(columns))
	for i, column := range columns {
		names[i] = pgx.Identifier{column}.Sanitize()
	}
	q := query{text: "COPY " + table.Sanitize() + " (" + strings.Join(names, ", ") + ") FROM STDIN"}
	_, err = t.s.send(ctx, t.in, q, func(ctx context.Context) (int64, bool, error) {
		var err error
		n, err = t.s.conn.CopyFrom(ctx, table, columns, source)
		return n, false, err
	})
	return n, err
}

// Prepare implements pgx.Tx. A statement is judged each time that it is executed.
func (t *tx) Prepare(ctx context.Context, name, query string) (*pgconn.StatementDescription, error) {
	conn := t.s.t.Conn()
	if t.done || t.s.t.Ending() {
		return nil, pgx.ErrTxClosed
	}
	if err := errors.Join(t.s.Check(), t.s.t.Innermost(t.in)); err != nil {
		return nil, err
	}
	if err := conn.Take(ctx); err != nil {
		return nil, ended(err)
	}
	defer conn.Give()
	var sd *pgconn.StatementDescription
	var err error
	conn.Use()
	conn.Watch(func() { sd, err = t.s.conn.Prepare(ctx, name, query) })
	if err != nil {
		conn.Watcher.Learn(err)
		return nil, err
	}
	t.s.prepared[name] = query
	return sd, nil
}

// Conn implements pgx.Tx. What is written by it is not judged.
func (t *tx) Conn() *pgx.Conn { return t.s.lend() }

var errLargeObjects = errors.New("pgxguard: large objects are not supported")

// LargeObjects implements pgx.Tx. Its methods return pgx.ErrTxClosed: pgx's own would outlive the
// operation, and write on a connection that is another's by then.
func (t *tx) LargeObjects() pgx.LargeObjects {
	var none pgx.Batch
	none.BeginTx(pgx.TxOptions{})
	return pgx.FailedBatchResults(&none, errLargeObjects).Tx().LargeObjects() // those of a closed one
}
