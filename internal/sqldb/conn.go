package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/belaygo/belay/internal/background"
)

// ErrNoConnection is returned when the pool gives no connection: nothing was sent.
var ErrNoConnection = errors.New("no connection")

// begin begins a transaction on a connection of its own. Like database/sql it replaces a
// connection that turns out to be dead.
func (d DB) begin(ctx context.Context) (*sql.Conn, error) {
	const tries = 3
	for n := 1; ; n++ {
		c, err := d.pool.Conn(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoConnection, err)
		}
		if err = watched(c, func() error { return d.start(ctx, c) }); err == nil {
			return c, nil
		}
		discard(c)
		if n == tries || !errors.Is(err, driver.ErrBadConn) {
			return nil, err
		}
	}
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
