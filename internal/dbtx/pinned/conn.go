package pinned

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
)

// A Watcher is the transaction of a connection.
type Watcher interface {
	// Admit returns the statements of a query, or an error if they may not be sent.
	Admit(ctx context.Context, query string) ([]sqltext.Statement, error)
	// Took notes statements that were sent, and how the last one ended.
	Took(query string, args []any, statements []sqltext.Statement, err error)
	// Learn notes an error that came with rows.
	Learn(err error)
	// Poison keeps the transaction from being committed.
	Poison(err error)
}

// Conn is the pinned connection of a guarded transaction, as gorm sees it.
// Because it can commit but not begin, gorm takes it for a transaction: it
// leaves out its own BEGIN and nests with savepoints. It must not embed
// *sql.Conn, or it could begin.
type Conn struct {
	SQL     *sql.Conn // for statements beside those of the program
	Session dialect.Session
	Broken  bool    // it has been discarded
	Watcher Watcher // set before the first statement

	results results
	several bool // it takes statements while rows are open
}

var _ gorm.Tx = (*Conn)(nil)

// ExecContext implements gorm.ConnPool.
func (c *Conn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	statements, err := c.admit(ctx, query)
	if err != nil {
		return nil, err
	}
	res, err := c.SQL.ExecContext(ctx, query, args...)
	c.Watcher.Took(query, args, statements, err)
	return res, err
}

// QueryContext implements gorm.ConnPool.
func (c *Conn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	statements, err := c.admit(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := c.SQL.QueryContext(ctx, query, args...)
	c.Watcher.Took(query, args, statements, err)
	if err == nil {
		c.results.add(rows)
	}
	return rows, err
}

// QueryRowContext implements gorm.ConnPool.
func (c *Conn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	statements, err := c.admit(ctx, query)
	if err != nil {
		return RefusedRow(ctx, err)
	}
	row := c.SQL.QueryRowContext(ctx, query, args...)
	c.Watcher.Took(query, args, statements, row.Err())
	if row.Err() == nil {
		c.results.addRow(row)
	}
	return row
}

// admit refuses a statement that may not be sent. MySQL and PostgreSQL take none while
// they send rows.
func (c *Conn) admit(ctx context.Context, query string) ([]sqltext.Statement, error) {
	open := c.results.settle(c.Watcher.Learn)
	if !c.several {
		if c.results.settleRow(c.Watcher.Learn) {
			c.Watcher.Poison(ErrRowsOpen) // it has just been read, in its caller's place
		}
		if open {
			return nil, ErrRowsOpen
		}
	}
	return c.Watcher.Admit(ctx, query)
}

// StmtContext makes gorm take the connection for a transaction when a session is
// to prepare its statements; otherwise it would prepare them in the pool. The
// callbacks refuse them.
func (c *Conn) StmtContext(_ context.Context, stmt *sql.Stmt) *sql.Stmt { return stmt }

// PrepareContext refuses: what a prepared statement does can't be watched.
func (c *Conn) PrepareContext(context.Context, string) (*sql.Stmt, error) {
	return nil, fmt.Errorf("%w: prepared statements are not supported", dbguard.ErrOutside)
}

// Commit refuses: the guard ends the transaction.
func (c *Conn) Commit() error { return fmt.Errorf("%w: Commit", ErrTxControl) }

// Rollback refuses: return an error from the operation instead.
func (c *Conn) Rollback() error { return fmt.Errorf("%w: Rollback", ErrTxControl) }

// Free gives the connection back to the pool.
func (c *Conn) Free() { _ = c.SQL.Close() }

// Discard closes the connection for good.
func (c *Conn) Discard() {
	c.Broken = true
	discard(c.SQL)
}

// Settle has the transaction learn what the database said at the end of rows that have
// been closed, and reports whether others are open.
func (c *Conn) Settle() (open bool) { return c.results.settle(c.Watcher.Learn) }

// SettleAll does so for single rows, too, which it closes.
func (c *Conn) SettleAll() (open bool) {
	open = c.Settle()
	return c.results.settleRow(c.Watcher.Learn) || open
}

// CloseRows closes the rows that are open.
func (c *Conn) CloseRows() { c.results.close(c.Watcher.Learn) }
