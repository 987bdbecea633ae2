// Package sqldb runs the statements that Belay sends outside of a business transaction: those
// of the outbox, of the purger, and of checks.
//
//	db := sqldb.New(pool, gormDB.Name())
//	res, err := db.Exec(ctx, "DELETE FROM belay_outbox WHERE id = ?", id)
//
// The pool is the program's, and so are its sessions. On MySQL and MariaDB one may have
// autocommit off, or an open transaction that somebody has left behind (a SELECT begins one
// without autocommit, and a COMMIT does with completion_type = CHAIN). A statement alone would
// join that transaction: nobody would commit it, and a read would see an old snapshot. So each
// is in a transaction there, which ends before its connection goes back to the pool. On
// PostgreSQL and SQLite no setting of a session turns autocommit off, and a statement is a
// transaction of its own.
package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/sqlerr"
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

// Run runs f, which uses no connection but c. On MySQL and MariaDB all of f is one transaction,
// whose isolation level is READ COMMITTED if level is that, and the session's otherwise. On other
// databases each statement of f is a transaction, and level does not matter.
//
// If f returns an error or panics, the connection is closed and the server rolls back; sql.ErrNoRows only
// ends the transaction.
func (d DB) Run(ctx context.Context, level sql.IsolationLevel, f func(c Conn) error) error {
	if !d.transacts {
		return f(d.pool)
	}
	c, err := d.begin(ctx, level)
	if err != nil {
		return err
	}
	err = watched(c, func() error {
		err := f(c)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			discard(c)
			return err
		}
		if end := commit(ctx, c); end != nil {
			discard(c)
			return end
		}
		return err
	})
	_ = c.Close()
	return err
}

// Read runs f, which uses no connection but c, in a transaction, and rolls that back: on every
// database, since a proxy may send a read outside of a transaction to a replica. level is as in
// Run. A rollback without an answer costs the connection, and is no error.
func (d DB) Read(ctx context.Context, level sql.IsolationLevel, f func(c Conn) error) error {
	c, err := d.begin(ctx, level)
	if err != nil {
		return err
	}
	err = watched(c, func() error {
		err := f(c)
		if _, end := c.ExecContext(ctx, "ROLLBACK"); end != nil {
			discard(c)
		}
		return err
	})
	_ = c.Close()
	return err
}

// commit is a statement, which ends with ctx: the Commit and Rollback of database/sql would wait
// for an answer that was lost for as long as the connection lasts.
func commit(ctx context.Context, c *sql.Conn) error {
	_, err := c.ExecContext(ctx, "COMMIT")
	return err
}

// begin begins a transaction on a connection of its own. Like database/sql it replaces a
// connection that turns out to be dead.
func (d DB) begin(ctx context.Context, level sql.IsolationLevel) (*sql.Conn, error) {
	const tries = 3
	for n := 1; ; n++ {
		c, err := d.pool.Conn(ctx)
		if err != nil {
			return nil, err
		}
		if err = watched(c, func() error { return d.start(ctx, c, level) }); err == nil {
			return c, nil
		}
		discard(c)
		if n == tries || !errors.Is(err, driver.ErrBadConn) {
			return nil, err
		}
	}
}

// erInTransaction refuses a SET TRANSACTION while one is open.
const erInTransaction = 1568

// start begins a transaction. It commits one that is open, as START TRANSACTION does.
func (d DB) start(ctx context.Context, c *sql.Conn, level sql.IsolationLevel) error {
	if !d.transacts { // another database than MySQL
		_, err := c.ExecContext(ctx, "BEGIN")
		return err
	}
	if level == sql.LevelReadCommitted {
		const set = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
		_, err := c.ExecContext(ctx, set)
		if sqlerr.IsMySQL(err, erInTransaction) {
			if _, err = c.ExecContext(ctx, "COMMIT AND NO CHAIN NO RELEASE"); err == nil {
				_, err = c.ExecContext(ctx, set)
			}
		}
		if err != nil {
			return err
		}
	}
	_, err := c.ExecContext(ctx, "START TRANSACTION")
	return err
}

// watched runs f, which uses c. If f panics, the connection to the server is closed, and the server
// rolls back: the next user of the pool must not join the transaction.
func watched(c *sql.Conn, f func() error) error {
	ended := false
	defer func() {
		if !ended {
			abort(c)
		}
	}()
	err := f()
	ended = true
	return err
}

// abort closes the connection to the server. It does not wait for discard: after a panic in a query
// database/sql takes the query for one that still runs, and Close would wait for its end.
func abort(c *sql.Conn) {
	_ = c.Raw(func(conn any) error { return conn.(driver.Conn).Close() })
	go func() {
		_ = background.Do(nil, "close a connection to the database", func() error {
			discard(c)
			return nil
		})
	}()
}

// discard closes the connection, and does not give it back to the pool. The server rolls back.
func discard(c *sql.Conn) {
	_ = c.Raw(func(any) error { return driver.ErrBadConn })
	_ = c.Close()
}
