package sqldb

import (
	"context"
	"database/sql"
)

// A DB is the program's pool of connections to a database. It is safe for concurrent use.
type DB struct {
	pool *sql.DB
	// transacts is whether statements need a transaction to be committed.
	transacts bool
}

// New returns the DB of a pool whose database has the given name in gorm.
func New(pool *sql.DB, database string) DB { return DB{pool, database == "mysql"} }

// A Conn takes statements.
type Conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
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
