package dbtx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
)

// conn is the pinned connection of a guarded transaction, as gorm sees it.
// Because it can commit but not begin, gorm takes it for a transaction: it
// leaves out its own BEGIN and nests with savepoints. It must not embed
// *sql.Conn, or it could begin.
type conn struct {
	sql     *sql.Conn
	tx      *Tx
	session dialect.Session
	results results
	broken  bool // it has been discarded
}

var _ gorm.Tx = (*conn)(nil)

func (c *conn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	statements, err := c.admit(ctx, query)
	if err != nil {
		return nil, err
	}
	res, err := c.sql.ExecContext(ctx, query, args...)
	c.tx.took(query, args, statements, err)
	return res, err
}

func (c *conn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	statements, err := c.admit(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := c.sql.QueryContext(ctx, query, args...)
	c.tx.took(query, args, statements, err)
	if err == nil {
		c.results.add(rows)
	}
	return rows, err
}

func (c *conn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	statements, err := c.admit(ctx, query)
	if err != nil {
		return refusedRow(ctx, err)
	}
	row := c.sql.QueryRowContext(ctx, query, args...)
	c.tx.took(query, args, statements, row.Err())
	if row.Err() == nil {
		c.results.addRow(row)
	}
	return row
}

// admit refuses a statement that may not be sent. MySQL and PostgreSQL take none while
// they send rows.
func (c *conn) admit(ctx context.Context, query string) ([]sqltext.Statement, error) {
	open := c.results.settle(c.tx.learn)
	if c.tx.dialect.Name != "sqlite" {
		if c.results.settleRow(c.tx.learn) {
			c.tx.poisonWith(dbguard.ErrRowsOpen) // it has just been read, in its caller's place
		}
		if open {
			return nil, dbguard.ErrRowsOpen
		}
	}
	return c.tx.admit(ctx, query)
}

// StmtContext makes gorm take the connection for a transaction when a session is
// to prepare its statements; otherwise it would prepare them in the pool. The
// callbacks refuse them.
func (c *conn) StmtContext(_ context.Context, stmt *sql.Stmt) *sql.Stmt { return stmt }

// PrepareContext refuses: what a prepared statement does can't be watched.
func (c *conn) PrepareContext(context.Context, string) (*sql.Stmt, error) {
	return nil, fmt.Errorf("%w: prepared statements are not supported", dbguard.ErrOutside)
}

// Commit refuses: the guard ends the transaction.
func (c *conn) Commit() error { return fmt.Errorf("%w: Commit", dbguard.ErrTxControl) }

// Rollback refuses: return an error from the operation instead.
func (c *conn) Rollback() error { return fmt.Errorf("%w: Rollback", dbguard.ErrTxControl) }

// free gives the connection back to the pool.
func (c *conn) free() { _ = c.sql.Close() }

// discard closes the connection for good.
func (c *conn) discard() {
	c.broken = true
	discard(c.sql)
}

func discard(c *sql.Conn) {
	_ = c.Raw(func(any) error { return driver.ErrBadConn })
	_ = c.Close()
}

// pin takes a connection from the pool and begins a transaction on it.
func (p *plugin) pin(ctx context.Context, pool *sql.DB, d dialect.Dialect) (*conn, error) {
	pinned := new(conn)
	var err error
	pinned.sql, err = connect(ctx, pool, func(c *sql.Conn) error {
		s, err := p.sessions.Of(ctx, pool, c, d)
		if err == nil {
			_, err = c.ExecContext(ctx, d.Begin)
		}
		if err != nil {
			return fmt.Errorf("begin transaction: %w", err)
		}
		pinned.session = s
		return nil
	})
	if err != nil {
		return nil, err
	}
	return pinned, nil
}

// connect takes a connection from the pool and prepares it. One that turns out to
// be dead is replaced, as database/sql does it.
func connect(ctx context.Context, pool *sql.DB, prepare func(*sql.Conn) error) (*sql.Conn, error) {
	const tries = 3
	for n := 1; ; n++ {
		c, err := pool.Conn(ctx)
		if err != nil {
			return nil, fmt.Errorf("get database connection: %w", err)
		}
		if err = prepare(c); err == nil {
			return c, nil
		}
		discard(c)
		if n == tries || !errors.Is(err, driver.ErrBadConn) {
			return nil, err
		}
	}
}
