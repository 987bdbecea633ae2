package pinned

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
	"github.com/belaygo/belay/internal/sqlconn"
)

// A Watcher is the transaction of a connection.
type Watcher interface {
	// Own reports whether a statement is a read of Belay's own, which may come while
	// another statement has its turn, and after the end.
	Own(ctx context.Context) bool
	// Admit returns the statements of a query, or an error if they may not be sent.
	Admit(ctx context.Context, query string) ([]sqltext.Statement, error)
	// Took notes statements that were sent, and how the last one ended.
	Took(query string, args []any, statements []sqltext.Statement, err error)
	// Context returns the context of the transaction.
	Context() context.Context
	// LeaveRoutine returns an error if the routine of an earlier statement has ended the
	// transaction. No rows may be open.
	LeaveRoutine() error
	// Affected notes how many rows the last statements have written, as the server reports.
	Affected(statements []sqltext.Statement, rows int64)
	// Ready prepares for the judgement of statements of the driver's own interface.
	Ready(statements []sqltext.Statement)
	// Judge judges what a statement of the driver's own interface did, and returns the error
	// that its caller gets.
	Judge(r *Raw) error
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
	Session dialect.Session
	Broken  atomic.Bool     // it has been discarded
	Watcher Watcher         // set before the first statement
	Done    <-chan struct{} // closed at the end of the transaction, if not before

	conn    *sql.Conn
	prelude prelude
	turn    turn
	sent    atomic.Int64 // statements of the program
	used    atomic.Int64 // statements, and other uses of the connection
	usedAt  atomic.Int64 // the last one of them, in nanoseconds since 1970
	lent    atomic.Bool  // the program has the driver's own, whose uses nobody counts
	results results
	several bool // it takes statements while rows are open
}

// ExecContext implements gorm.ConnPool.
func (c *Conn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	own := c.Watcher.Own(ctx)
	statements, err := c.admit(ctx, query, own)
	if err != nil {
		return nil, err
	}
	defer c.leave(own)
	raw := c.written(ctx, query, args, statements)
	ctx, cancel := c.within(ctx, own)
	defer cancel()
	var res sql.Result
	c.Watch(func() { res, err = c.exec(ctx, query, args) })
	c.Watcher.Took(query, args, statements, err)
	rows := affected(res, err)
	switch {
	case raw != nil:
		err = raw.end(rows, err)
	case rows >= 0:
		c.Watcher.Affected(statements, rows)
	}
	if ended := c.leaveRoutine(own); ended != nil {
		return nil, errors.Join(ended, err)
	}
	return res, err
}

// affected returns how many rows a statement has written, or -1.
func affected(res sql.Result, err error) int64 {
	if err != nil {
		return -1
	}
	if rows, err := res.RowsAffected(); err == nil {
		return rows
	}
	return -1
}

// QueryContext implements gorm.ConnPool.
func (c *Conn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	own := c.Watcher.Own(ctx)
	statements, err := c.admit(ctx, query, own)
	if err != nil {
		return nil, err
	}
	defer c.leave(own)
	raw := c.written(ctx, query, args, statements)
	ctx, _ = c.within(ctx, own) // the rows need it
	var rows *sql.Rows
	c.Watch(func() {
		if err = c.flush(); err == nil {
			rows, err = c.conn.QueryContext(ctx, query, args...) //nolint:sqlclosecheck,rowserrcheck // they are the caller's
		}
	})
	c.Watcher.Took(query, args, statements, err)
	switch {
	case err == nil:
		c.results.add(rows)
	case raw != nil:
		err = raw.end(-1, err)
	}
	return rows, err
}

// QueryRowContext implements gorm.ConnPool.
func (c *Conn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	own := c.Watcher.Own(ctx)
	statements, err := c.admit(ctx, query, own)
	if err != nil {
		return RefusedRow(ctx, err)
	}
	defer c.leave(own)
	raw := c.written(ctx, query, args, statements)
	ctx, _ = c.within(ctx, own)
	var row *sql.Row
	c.Watch(func() { row = c.SQL().QueryRowContext(ctx, query, args...) })
	c.Watcher.Took(query, args, statements, row.Err())
	switch {
	case row.Err() == nil:
		c.results.addRow(row)
	case raw != nil:
		return RefusedRow(context.WithoutCancel(ctx), raw.end(-1, row.Err()))
	}
	return row
}

// admit takes the turn for a statement, unless it is Belay's own, and refuses one that may
// not be sent. MySQL and PostgreSQL take none while they send rows.
func (c *Conn) admit(ctx context.Context, query string, own bool) (statements []sqltext.Statement, err error) {
	if !own {
		if err := c.Take(ctx); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				c.Give()
			}
		}()
	}
	open := c.results.settle(c.Watcher.Learn)
	if !c.several {
		if c.results.settleRow(c.Watcher.Learn) {
			c.Watcher.Poison(ErrRowsOpen) // settleRow has read it instead of its caller
		}
		if open {
			return nil, ErrRowsOpen
		}
	}
	c.Use()
	if !own {
		c.sent.Add(1)
	}
	if statements, err = c.Watcher.Admit(ctx, query); err == nil && !own {
		c.prelude.others++
	}
	return statements, err
}

// leaveRoutine is called after a statement that has no rows. Own reads come between those
// of the program.
func (c *Conn) leaveRoutine(own bool) error {
	if own {
		return nil
	}
	return c.Watcher.LeaveRoutine()
}

func (c *Conn) leave(own bool) {
	if !own {
		c.Give()
	}
}

// StmtContext makes gorm take the connection for a transaction when a session is
// to prepare its statements; otherwise it would prepare them in the pool. The
// callbacks refuse them.
func (c *Conn) StmtContext(_ context.Context, stmt *sql.Stmt) *sql.Stmt { return stmt }

// PrepareContext returns an error: the effects of a prepared statement cannot be
// watched.
func (c *Conn) PrepareContext(context.Context, string) (*sql.Stmt, error) {
	return nil, fmt.Errorf("%w: prepared statements are not supported", conflict.ErrOutside)
}

// Commit refuses: the guard ends the transaction.
func (c *Conn) Commit() error {
	return fmt.Errorf("%w: Commit: return nil from the operation instead", ErrTxControl)
}

// Rollback refuses: return an error from the operation instead.
func (c *Conn) Rollback() error {
	return fmt.Errorf("%w: Rollback: return an error from the operation instead", ErrTxControl)
}

// Watch runs f, which uses the connection. If f panics, as a driver or a driver.Valuer may, the
// connection is closed, and the transaction poisoned: the caller may recover.
func (c *Conn) Watch(f func()) {
	ended := false
	defer func() {
		if !ended {
			c.Abort()
		}
	}()
	f()
	ended = true
}

// Abort closes the connection for good after a panic, or under a statement that does not end, without the
// wait of Discard.
func (c *Conn) Abort() {
	if c.Broken.Load() {
		return
	}
	c.Broken.Store(true)
	if c.Watcher != nil {
		c.Watcher.Poison(ErrPanic)
	}
	sqlconn.Abort(c.conn)
}

// Use counts a use of the connection: a statement that is about to be sent, whoever sends it. It returns
// how often the connection was used then.
func (c *Conn) Use() int64 {
	c.usedAt.Store(time.Now().UnixNano())
	return c.used.Add(1)
}

// Lend notes that the program gets the driver's connection, for the rest of the transaction.
func (c *Conn) Lend() { c.lent.Store(true) }

// UsedSince reports whether the connection was used since Use returned used, or may have been.
func (c *Conn) UsedSince(used int64) bool { return c.lent.Load() || c.used.Load() != used }

// Free gives the connection back to the pool, unless it is broken.
func (c *Conn) Free() {
	if !c.Broken.Load() {
		_ = c.conn.Close()
	}
}

// Discard closes the connection for good.
func (c *Conn) Discard() {
	if c.Broken.Load() {
		return
	}
	c.Broken.Store(true)
	sqlconn.Discard(c.conn)
}

// Settle passes the errors at the end of closed rows to the transaction, and reports
// whether other rows are open.
func (c *Conn) Settle() (open bool) { return c.results.settle(c.Watcher.Learn) }

// SettleAll does so for single rows, too, which it closes.
func (c *Conn) SettleAll() (open bool) {
	open = c.Settle()
	return c.results.settleRow(c.Watcher.Learn) || open
}

// CloseRows closes the rows that are open.
func (c *Conn) CloseRows() { c.results.close(c.Watcher.Learn) }
