package dbtx

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/belaygo/belay/internal/dbtx/dialect"
)

// An Execer takes statements of Belay that each insert, update or delete rows, and return none.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// last is the connection for such a statement, which is often the transaction's last: from
// PostgreSQL it also returns what Commit would have to ask for by a statement of its own.
type last struct{ t *Tx }

// reported is what PostgreSQL has returned of a transaction with a statement.
type reported struct {
	dialect.Transaction
	used int64 // uses of the connection up to that statement
}

// ExecContext implements Execer.
func (l last) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	c := l.t.conn
	used := c.Use() // those who come meanwhile are behind it
	if !l.t.dialect.Aborts || !c.Session.Numbers {
		return c.SQL().ExecContext(ctx, query, args...)
	}
	now, err := l.t.dialect.ReadTransaction(ctx, c.SQL(), c.Session, query, args...)
	if err != nil {
		return nil, err
	}
	if l.t.reported = (reported{}); now.Rows > 0 {
		l.t.reported = reported{now, used}
	}
	return driver.RowsAffected(now.Rows), nil
}

// atEnd returns what PostgreSQL reports of a transaction that is about to be committed. It is asked if
// another statement was or may have been sent meanwhile, and have failed or come to another session, and if
// the write itself came to another one: behind some poolers that has made, and committed, a transaction
// of its own, with a number. A driver that knows how the server ended each statement need not ask for a
// number again, if the connection lives.
func (t *Tx) atEnd(ctx context.Context) (dialect.Transaction, error) {
	if r := &t.reported; r.Own && (!t.conn.UsedSince(r.used) || r.Number != "" && t.conn.InTransaction()) {
		return r.Transaction, nil
	}
	return t.dialect.ReadTransaction(ctx, t.conn.SQL(), t.conn.Session, "")
}
