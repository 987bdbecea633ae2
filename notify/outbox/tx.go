package outbox

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
)

// inTx runs f in a transaction at READ COMMITTED and commits it. After any error
// it closes the connection, and the server rolls back. The COMMIT is a statement
// that ends with ctx: the Commit and Rollback of database/sql would wait for an
// answer that was lost for as long as the connection lasts.
func inTx(ctx context.Context, pool *sql.DB, f func(*sql.Conn) error) error {
	c, err := begin(ctx, pool)
	if err != nil {
		return err
	}
	defer c.Close()
	if err = f(c); err == nil {
		_, err = c.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		discard(c)
	}
	return err
}

// begin begins a transaction on a connection of its own. Like database/sql it
// replaces a connection that turns out to be dead.
func begin(ctx context.Context, pool *sql.DB) (*sql.Conn, error) {
	const tries = 3
	for n := 1; ; n++ {
		c, err := pool.Conn(ctx)
		if err != nil {
			return nil, err
		}
		if _, err = c.ExecContext(ctx, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"); err == nil {
			_, err = c.ExecContext(ctx, "START TRANSACTION")
		}
		if err == nil {
			return c, nil
		}
		discard(c)
		if n == tries || !errors.Is(err, driver.ErrBadConn) {
			return nil, err
		}
	}
}

// discard closes the connection, and does not give it back to the pool.
func discard(c *sql.Conn) {
	_ = c.Raw(func(any) error { return driver.ErrBadConn })
}
