package dbtx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/sqlconn"
)

// reconnect returns a connection to the server that had the transaction. On another server
// of a cluster its session's number may be another's, its locks are not visible, and its
// commit may not have arrived yet.
func (t *Tx) reconnect(ctx context.Context) (c *sql.Conn, now dialect.Session, err error) {
	c, err = pinned.Connect(ctx, t.pool, func(c *sql.Conn) error {
		now, err = t.dialect.ReadSession(ctx, c)
		if err == nil {
			err = t.isServer(now)
		}
		return err
	})
	return c, now, err
}

// atServer runs f, which reads on c, at the server that had the transaction. On MySQL and MariaDB it
// does so in a transaction of its own, which a proxy sends to one server: it may send a read outside
// of a transaction to a replica that is behind. f waits for no commit of a cluster.
func (t *Tx) atServer(ctx context.Context, c *sql.Conn, f func() error) error {
	if t.dialect.Name != "mysql" || t.conn.Session.Proven().Resembles() {
		return f()
	}
	for _, query := range []string{"ROLLBACK", "BEGIN"} { // there may be one without autocommit
		if _, err := c.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	now, err := t.dialect.ReadSession(ctx, c)
	if err == nil {
		err = t.isServer(now)
	}
	if err == nil {
		err = f()
	}
	_, ended := c.ExecContext(ctx, "ROLLBACK")
	return errors.Join(err, ended)
}

// isServer returns an error unless a session is one of the server that had the transaction.
func (t *Tx) isServer(now dialect.Session) error {
	if now.Server != t.conn.Session.Server {
		return fmt.Errorf("the database is another server now, %s instead of %s", now.Server, t.conn.Session.Server)
	}
	return nil
}

// reading runs f, which reads on c, and gives c back to the pool. If f panics, c is closed.
func (t *Tx) reading(ctx context.Context, c *sql.Conn, f func() (Outcome, error)) (o Outcome, err error) {
	err = sqlconn.Watch(c, func() (err error) {
		o, err = f()
		t.giveBack(ctx, c)
		return err
	})
	return o, err
}

// giveBack returns a connection to the pool. On MySQL and MariaDB, without autocommit, its reads
// have begun a transaction, which would hold their locks.
func (t *Tx) giveBack(ctx context.Context, c *sql.Conn) {
	conn := pinned.New(c)
	if t.dialect.Name == "mysql" {
		if _, err := c.ExecContext(ctx, "ROLLBACK"); err != nil {
			conn.Discard()
			return
		}
	}
	conn.Free()
}
