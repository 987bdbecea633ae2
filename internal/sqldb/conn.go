package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/belaygo/belay/internal/sqlconn"
)

// ErrNoConnection is returned when the pool gives no connection: nothing was sent.
var ErrNoConnection = errors.New("no connection")

// conn returns a connection after the first statements, which write nothing, have succeeded on it.
// Like database/sql it replaces a connection that turns out to be dead.
func (d DB) conn(ctx context.Context, first func(context.Context, *sql.Conn) error) (*sql.Conn, error) {
	const tries = 3
	for n := 1; ; n++ {
		c, err := d.pool.Conn(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoConnection, err)
		}
		if err = sqlconn.Watch(c, func() error { return first(ctx, c) }); err == nil {
			return c, nil
		}
		sqlconn.Discard(c)
		if n == tries || !errors.Is(err, driver.ErrBadConn) {
			return nil, err
		}
	}
}
