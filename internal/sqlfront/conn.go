package sqlfront

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/belaygo/belay/internal/dbtx/pinned"
)

// conn is a connection of a handle: a view of the one on which the operation runs.
type conn struct {
	t      *Transaction
	whole  bool       // its next transaction is the operation's own
	save   *Savepoint // of its nested transaction; nil = the operation's own, or none
	checks int        // 0 = it is not known whether the driver's connection checks values; -1 = it does not
}

// recovered makes an error of a panic of the driver, or of a value of the program. database/sql would
// not give back the locks that it has, so the operation could not be ended.
func (c *conn) recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", pinned.ErrPanic, r)
		c.t.conn.Watcher.Poison(*err)
	}
}

// Close implements driver.Conn. The guard frees the connection.
func (c *conn) Close() error { return nil }

// Begin implements driver.Conn.
func (c *conn) Begin() (driver.Tx, error) { return c.BeginTx(context.Background(), driver.TxOptions{}) }

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if c.whole {
		c.whole = false
		return whole{c.t}, nil
	}
	if o.Isolation != 0 || o.ReadOnly {
		return nil, errors.New("dbguard: a transaction inside of an operation takes no options")
	}
	return c.begin(ctx)
}

// send runs a statement without arguments, whatever the driver offers.
func (c *conn) send(ctx context.Context, query string) error {
	_, err := c.exec(ctx, query, nil)
	if err != driver.ErrSkip { //nolint:errorlint // the protocol's own value
		return err
	}
	st, err := c.PrepareContext(ctx, query)
	if err != nil {
		return err
	}
	defer st.Close()
	_, err = st.(*stmt).exec(ctx, nil)
	return err
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.t.Innermost(c.save); err != nil {
		return nil, err
	}
	return c.exec(ctx, query, args)
}

func (c *conn) exec(ctx context.Context, query string, args []driver.NamedValue) (res driver.Result, err error) {
	defer c.recovered(&err)
	_, err = c.t.conn.Send(ctx, query, args, func(ctx context.Context, dc driver.Conn) (int64, bool, error) {
		switch d := dc.(type) {
		case driver.ExecerContext:
			res, err = d.ExecContext(ctx, query, args)
		case driver.Execer: //nolint:staticcheck // old drivers
			values, failed := unnamed(ctx, args)
			if failed != nil {
				return -1, false, failed
			}
			res, err = d.Exec(query, values)
		default:
			err = driver.ErrSkip
		}
		return affected(res, err), false, err
	})
	return res, err
}

// affected returns how many rows a statement has written, or -1.
func affected(res driver.Result, err error) int64 {
	if err != nil || res == nil {
		return -1
	}
	if n, err := res.RowsAffected(); err == nil {
		return n
	}
	return -1
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (_ driver.Rows, err error) {
	if err := c.t.Innermost(c.save); err != nil {
		return nil, err
	}
	defer c.recovered(&err)
	return c.t.query(ctx, query, args, func(ctx context.Context, dc driver.Conn) (driver.Rows, error) {
		switch d := dc.(type) {
		case driver.QueryerContext:
			return d.QueryContext(ctx, query, args)
		case driver.Queryer: //nolint:staticcheck // old drivers
			values, err := unnamed(ctx, args)
			if err != nil {
				return nil, err
			}
			return d.Query(query, values)
		}
		return nil, driver.ErrSkip
	})
}

// Prepare implements driver.Conn.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext implements driver.ConnPrepareContext. A statement is admitted each time that
// it is executed.
func (c *conn) PrepareContext(ctx context.Context, query string) (_ driver.Stmt, err error) {
	defer c.recovered(&err)
	if c.t.Ending() {
		return nil, sql.ErrTxDone
	}
	if err := c.t.conn.Take(ctx); err != nil {
		return nil, err
	}
	defer c.t.conn.Give()
	return prepare(ctx, c, query)
}

// Ping implements driver.Pinger.
func (c *conn) Ping(ctx context.Context) error {
	if err := c.t.conn.Take(ctx); err != nil {
		return err
	}
	defer c.t.conn.Give()
	return c.t.conn.Driver(func(dc driver.Conn) error {
		if p, ok := dc.(driver.Pinger); ok {
			return p.Ping(ctx)
		}
		return nil
	})
}

// CheckNamedValue implements driver.NamedValueChecker: the driver's connection decides, or
// the rule of database/sql if that does not.
func (c *conn) CheckNamedValue(nv *driver.NamedValue) (err error) {
	defer c.recovered(&err)
	if err = c.check(nv); err != driver.ErrSkip { //nolint:errorlint // the protocol's own value
		return err
	}
	nv.Value, err = driver.DefaultParameterConverter.ConvertValue(nv.Value)
	return err
}

// check lets the driver's connection check a value.
func (c *conn) check(nv *driver.NamedValue) error {
	if c.checks < 0 {
		return driver.ErrSkip
	}
	return c.t.conn.Driver(func(dc driver.Conn) error {
		d, ok := dc.(driver.NamedValueChecker)
		if !ok {
			c.checks = -1
			return driver.ErrSkip
		}
		return d.CheckNamedValue(nv)
	})
}

// unnamed returns values for a driver that knows neither names nor contexts.
func unnamed(ctx context.Context, named []driver.NamedValue) ([]driver.Value, error) {
	values := make([]driver.Value, len(named))
	for i, n := range named {
		if n.Name != "" {
			return nil, errors.New("sql: driver does not support the use of Named Parameters")
		}
		values[i] = n.Value
	}
	return values, ctx.Err()
}
