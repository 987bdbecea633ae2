package sqldb

import (
	"context"
	"database/sql"
	"errors"

	"github.com/belaygo/belay/internal/sqlerr"
)

// InTx runs f, which uses no connection but c, in a transaction, and commits it. If f returns an
// error or panics, the connection is closed and the server rolls back; sql.ErrNoRows only ends the
// transaction.
func (d DB) InTx(ctx context.Context, f func(c Conn) error) error {
	c, err := d.begin(ctx)
	if err != nil {
		return err
	}
	err = watched(c, func() error {
		err := f(bound{c, d.Dialect})
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			discard(c)
			return err
		}
		if end := commit(ctx, c); end != nil {
			discard(c)
			return end
		}
		return err
	})
	_ = c.Close()
	return err
}

// Read runs f, which uses no connection but c, in a transaction, and rolls that back: on every
// database, since a proxy may send a read outside of a transaction to a replica. A rollback without
// an answer costs the connection, and is no error.
func (d DB) Read(ctx context.Context, f func(c Conn) error) error {
	c, err := d.begin(ctx)
	if err != nil {
		return err
	}
	err = watched(c, func() error {
		err := f(bound{c, d.Dialect})
		if _, end := c.ExecContext(ctx, "ROLLBACK"); end != nil {
			discard(c)
		}
		return err
	})
	_ = c.Close()
	return err
}

// commit is a statement, which ends with ctx: the Commit and Rollback of database/sql would wait
// for an answer that was lost for as long as the connection lasts.
func commit(ctx context.Context, c *sql.Conn) error {
	_, err := c.ExecContext(ctx, "COMMIT")
	return err
}

// erInTransaction refuses a SET TRANSACTION while one is open.
const erInTransaction = 1568

// start begins a transaction. It commits one that is open, as START TRANSACTION does.
func (d DB) start(ctx context.Context, c *sql.Conn) error {
	if !d.transacts { // another database than MySQL
		_, err := c.ExecContext(ctx, "BEGIN")
		return err
	}
	if d.level == sql.LevelReadCommitted {
		const set = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
		_, err := c.ExecContext(ctx, set)
		if sqlerr.IsMySQL(err, erInTransaction) {
			if _, err = c.ExecContext(ctx, "COMMIT AND NO CHAIN NO RELEASE"); err == nil {
				_, err = c.ExecContext(ctx, set)
			}
		}
		if err != nil {
			return err
		}
	}
	_, err := c.ExecContext(ctx, "START TRANSACTION")
	return err
}
