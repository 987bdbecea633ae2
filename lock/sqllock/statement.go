package sqllock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/belaygo/belay/internal/sqlconn"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/lock/lockengine"
)

// attempts is how often a statement is sent on a connection that turns out to be closed,
// before another one is opened for it. Nothing is sent on such a connection.
const attempts = 3

// run calls f, which sends one complete statement, with a connection.
func (e *engine) run(ctx context.Context, what, statement string, f func(c *sql.Conn, statement string) error) error {
	if e.ctx.Err() != nil {
		return fmt.Errorf("sqllock: %s: %w", what, errClosed)
	}
	err := e.onConn(ctx, func(c *sql.Conn) error { return f(c, e.sql(statement)) })
	if err != nil {
		return fmt.Errorf("sqllock: %s: %w", what, classify(err))
	}
	return nil
}

// onConn calls f with a connection: an error before that proves that nothing was sent.
func (e *engine) onConn(ctx context.Context, f func(c *sql.Conn) error) error {
	for range attempts {
		c, err := e.pool.Conn(ctx)
		if err != nil {
			return unconnected(fmt.Errorf("%w: %w", sqldb.ErrNoConnection, err))
		}
		if err := ctx.Err(); err != nil {
			return errors.Join(fmt.Errorf("%w: %w", lockengine.ErrNotSent, err), c.Close())
		}
		err = sqlconn.Watch(c, func() error { return f(c) })
		if isSpent(err) { // close it, so that the next call opens a new one
			_ = c.Raw(func(any) error { return driver.ErrBadConn })
		}
		_ = c.Close()
		if !errors.Is(err, driver.ErrBadConn) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", lockengine.ErrNotSent, driver.ErrBadConn)
}

// exec sends a statement that returns no rows.
func (e *engine) exec(ctx context.Context, what, statement string, args []any) (res sql.Result, err error) {
	err = e.run(ctx, what, statement, func(c *sql.Conn, statement string) (err error) {
		res, err = c.ExecContext(ctx, statement, args...)
		return err
	})
	return res, err
}

// query sends a statement, and calls each for every row of its answer.
func (e *engine) query(ctx context.Context, what, statement string, args []any, each func(scan sqldb.Scan) error) error {
	return e.run(ctx, what, statement, func(c *sql.Conn, statement string) error {
		return sqldb.Query(ctx, c, statement, args, each)
	})
}
