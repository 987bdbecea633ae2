package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/belaygo/belay/internal/sqlconn"
)

// A DB is the program's pool of connections to a database. Its statements have the parameters and
// quotes that Rebind takes. It is safe for concurrent use.
type DB struct {
	Dialect

	pool  *sql.DB
	level sql.IsolationLevel
}

// New returns the DB of a pool.
func New(pool *sql.DB, d Dialect) DB { return DB{Dialect: d, pool: pool} }

// ReadCommitted returns a DB whose transactions on MySQL and MariaDB have the isolation level READ
// COMMITTED, and not that of the session. On other databases the level does not matter.
func (d DB) ReadCommitted() DB {
	d.level = sql.LevelReadCommitted
	return d
}

// A Conn takes statements.
type Conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// bound is a Conn that rebinds its statements.
type bound struct {
	conn Conn
	d    Dialect
}

func (b bound) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return b.conn.ExecContext(ctx, b.d.Rebind(query), args...)
}

func (b bound) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return b.conn.QueryContext(ctx, b.d.Rebind(query), args...)
}

func (b bound) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return b.conn.QueryRowContext(ctx, b.d.Rebind(query), args...)
}

// Exec runs a statement that returns no rows, and commits it. After an error it may be committed. The
// server commits without being asked again, unless a session of MySQL has autocommit off: a process
// that is paused behind the statement holds no locks.
func (d DB) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if !d.transacts {
		return bound{d.pool, d.Dialect}.ExecContext(ctx, query, args...)
	}
	c, err := d.conn(ctx, d.leave)
	if err != nil {
		return nil, err
	}
	var res sql.Result
	err = sqlconn.Watch(c, func() (err error) {
		if res, err = (bound{c, d.Dialect}).ExecContext(ctx, query, args...); err == nil {
			err = commit(ctx, c) // for a session without autocommit
		}
		if err != nil {
			sqlconn.Discard(c)
		}
		return err
	})
	_ = c.Close()
	if err != nil {
		return nil, err
	}
	return res, nil
}

// QueryRow reads one row into dest. Without a row the error is sql.ErrNoRows.
func (d DB) QueryRow(ctx context.Context, query string, args []any, dest ...any) error {
	return d.alone(ctx, func(c Conn) error { return c.QueryRowContext(ctx, query, args...).Scan(dest...) })
}

// Query runs a statement that returns rows, calls each for every row, and commits.
func (d DB) Query(ctx context.Context, query string, args []any, each func(scan Scan) error) error {
	return d.alone(ctx, func(c Conn) error { return Query(ctx, c, query, args, each) })
}

// A Scan reads the columns of a row into dest.
type Scan = func(dest ...any) error

// Query runs a statement that returns rows, and calls each for every row. It reads to the end: a
// database may report only there that it could not commit. An error after the first answer does not
// match driver.ErrBadConn, since the statement was sent.
func Query(ctx context.Context, c Conn, query string, args []any, each func(scan Scan) error) error {
	rows, err := c.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	for err == nil && rows.Next() {
		err = each(rows.Scan)
	}
	err = errors.Join(err, rows.Err(), rows.Close()) //nolint:sqlclosecheck // its error counts
	if errors.Is(err, driver.ErrBadConn) {
		err = fmt.Errorf("%w: %s", io.ErrUnexpectedEOF, err.Error())
	}
	return err
}

// alone runs f, which sends one query. On MySQL it is in a transaction: see the package comment.
func (d DB) alone(ctx context.Context, f func(c Conn) error) error {
	if d.transacts {
		return d.InTx(ctx, f)
	}
	return f(bound{d.pool, d.Dialect})
}
