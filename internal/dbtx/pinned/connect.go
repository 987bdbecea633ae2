package pinned

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/sqlconn"
)

// Connect takes a connection from the pool and prepares it. One that turns out to
// be dead is replaced, as database/sql does it.
func Connect(ctx context.Context, pool *sql.DB, prepare func(*sql.Conn) error) (*sql.Conn, error) {
	const tries = 3
	for n := 1; ; n++ {
		c, err := pool.Conn(ctx)
		if err != nil {
			return nil, fmt.Errorf("get database connection: %w", err)
		}
		if err = sqlconn.Watch(c, func() error { return prepare(c) }); err == nil {
			return c, nil
		}
		sqlconn.Discard(c)
		if n == tries || !errors.Is(err, driver.ErrBadConn) {
			return nil, err
		}
	}
}

// New returns a connection on which there is no transaction.
func New(c *sql.Conn) *Conn { return &Conn{conn: c} }

// Begin takes a connection from the pool and begins a transaction on it. told is the family of the
// server that the program's configuration names. If defers is set, and the driver can send several
// statements at once, the connection is Deferring, and BEGIN is for the caller to defer.
func Begin(ctx context.Context, pool *sql.DB, d dialect.Dialect, known *dialect.Sessions, told dialect.Family, defers bool) (*Conn, error) {
	pinned := &Conn{several: d.Name == "sqlite", turn: turn{taken: make(chan struct{}, 1)}}
	var err error
	pinned.conn, err = Connect(ctx, pool, func(c *sql.Conn) error {
		s, err := known.Of(ctx, pool, c, d)
		s = s.As(told)
		if pinned.prelude.pipe = nil; err == nil && defers && s.Defers() {
			pinned.prelude.pipe = pipelineOf(c)
		}
		if err == nil && !pinned.Deferring() {
			var room [3]string
			err = begin(ctx, c, s.AppendBegin(room[:0], d))
		}
		if err != nil {
			return fmt.Errorf("begin transaction: %w", err)
		}
		pinned.Session = s
		return nil
	})
	if err != nil {
		return nil, err
	}
	return pinned, nil
}

func begin(ctx context.Context, c *sql.Conn, queries []string) error {
	for _, query := range queries {
		if _, err := c.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	return nil
}
