package sqldb

import (
	"context"
	"database/sql"
)

// A DB is the program's pool of connections to a database. Its statements have the parameters and
// quotes that Rebind takes. It is safe for concurrent use.
type DB struct {
	Dialect

	pool *sql.DB
}

// New returns the DB of a pool.
func New(pool *sql.DB, d Dialect) DB { return DB{d, pool} }

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

// Exec runs a statement that returns no rows, and commits it.
func (d DB) Exec(ctx context.Context, query string, args ...any) (res sql.Result, err error) {
	err = d.Run(ctx, sql.LevelDefault, func(c Conn) (err error) {
		res, err = c.ExecContext(ctx, query, args...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// QueryRow reads one row into dest. Without a row the error is sql.ErrNoRows.
func (d DB) QueryRow(ctx context.Context, query string, args []any, dest ...any) error {
	return d.Run(ctx, sql.LevelDefault, func(c Conn) error { return c.QueryRowContext(ctx, query, args...).Scan(dest...) })
}
