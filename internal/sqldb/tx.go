package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/belaygo/belay/internal/sqlconn"
	"github.com/belaygo/belay/internal/sqlerr"
)

// ErrReadOnly is the error of a function that finds its server read-only, as replicas are.
var ErrReadOnly = errors.New("the server is read-only")

// InTx runs f, which uses no connection but c, in a transaction, and commits it. If f returns an
// error or panics, the connection is closed and the server rolls back; sql.ErrNoRows only ends the
// transaction. A COMMIT without an answer ends with ctx, or after 30 seconds; its outcome is unknown.
func (d DB) InTx(ctx context.Context, f func(c Conn) error) error {
	c, err := d.conn(ctx, d.start)
	if err != nil {
		return err
	}
	err = sqlconn.Watch(c, func() error {
		err := f(bound{c, d.Dialect})
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			sqlconn.Discard(c)
			return err
		}
		if ended := end(ctx, c, "COMMIT"); ended != nil {
			sqlconn.Discard(c)
			return ended
		}
		return err
	})
	_ = c.Close()
	return err
}

// Read runs f, which uses no connection but c, in a transaction, and rolls that back: on every
// database, since a proxy may send a read outside of a transaction to a replica. A rollback without
// an answer costs the connection, and is no error. So does a server that takes no writes: the
// next connection may lead to another one.
func (d DB) Read(ctx context.Context, f func(c Conn) error) error {
	c, err := d.conn(ctx, d.start)
	if err != nil {
		return err
	}
	err = sqlconn.Watch(c, func() error {
		err := f(bound{c, d.Dialect})
		if TakesNoWrites(err) || end(ctx, c, "ROLLBACK") != nil {
			sqlconn.Discard(c)
		}
		return err
	})
	_ = c.Close()
	return err
}

// erNotReady is the error of a Galera node that takes no statements.
const erNotReady = 1047

// TakesNoWrites reports whether err shows that the server takes no writes. A new connection may lead
// to a server that does.
func TakesNoWrites(err error) bool {
	return errors.Is(err, ErrReadOnly) || sqlerr.IsReadOnly(err) || sqlerr.IsMySQL(err, erNotReady)
}

// endTimeout bounds a COMMIT or ROLLBACK of a context without an end.
const endTimeout = 30 * time.Second

// end sends a COMMIT or ROLLBACK as a statement, so that it ends with ctx, and after endTimeout. The
// Commit and Rollback of database/sql would wait for an answer that was lost for as long as the
// connection lasts.
func end(ctx context.Context, c *sql.Conn, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	_, err := c.ExecContext(ctx, statement)
	return err
}

// erInTransaction refuses a SET TRANSACTION while one is open.
const erInTransaction = 1568

// start begins a transaction. It commits one that is open, as START TRANSACTION does.
func (d DB) start(ctx context.Context, c *sql.Conn) error {
	begin := "BEGIN"
	if d.transacts {
		begin = "START TRANSACTION"
		if d.level == sql.LevelReadCommitted {
			if err := readCommitted(ctx, c); err != nil {
				return err
			}
		}
	}
	_, err := c.ExecContext(ctx, begin)
	return err
}

// commitOnly is a COMMIT whatever completion_type is.
const commitOnly = "COMMIT AND NO CHAIN NO RELEASE"

const erParse = 1064

// commit ends a transaction of MySQL, and begins no other. OceanBase takes the plain COMMIT alone.
func commit(ctx context.Context, c *sql.Conn) error {
	err := end(ctx, c, commitOnly)
	if sqlerr.IsMySQL(err, erParse) {
		err = end(ctx, c, "COMMIT")
	}
	return err
}

// leave ends a transaction of MySQL that somebody has left open, so that the next statement is in one
// of its own.
func (d DB) leave(ctx context.Context, c *sql.Conn) error {
	if d.level == sql.LevelReadCommitted {
		return readCommitted(ctx, c)
	}
	return commit(ctx, c)
}

// readCommitted sets the level of the next transaction of MySQL. It commits one that is open.
func readCommitted(ctx context.Context, c *sql.Conn) error {
	const set = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
	_, err := c.ExecContext(ctx, set)
	if sqlerr.IsMySQL(err, erInTransaction) {
		if err = commit(ctx, c); err == nil {
			_, err = c.ExecContext(ctx, set)
		}
	}
	return err
}
