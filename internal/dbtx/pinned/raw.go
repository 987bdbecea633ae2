package pinned

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
)

// A Raw is a statement that is sent by the driver's own interface, and what it did.
type Raw struct {
	Query      string
	Args       []driver.NamedValue
	Statements []sqltext.Statement
	Affected   int64 // rows that it has written, as far as the server reports; -1 = it does not
	Err        error

	conn *Conn
	nth  int64
}

// writtenKey marks the context of a statement that the program has written, and no front.
type writtenKey struct{}

// Written marks the context of a statement by whether the program has written its SQL: then it is
// judged. A statement of a hook has the context of the one that it is a hook of.
func Written(ctx context.Context, by bool) context.Context {
	if was, _ := ctx.Value(writtenKey{}).(bool); was == by {
		return ctx
	}
	return context.WithValue(ctx, writtenKey{}, by)
}

// written returns the statement of a marked context, nil if it is not marked. It has the turn.
func (c *Conn) written(ctx context.Context, query string, args []any, statements []sqltext.Statement) *Raw {
	if by, _ := ctx.Value(writtenKey{}).(bool); !by {
		return nil
	}
	c.Watcher.Ready(statements)
	r := &Raw{Query: query, Args: make([]driver.NamedValue, len(args)), Statements: statements, conn: c, nth: c.sent.Load()}
	for i, arg := range args {
		r.Args[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
		if named, ok := arg.(sql.NamedArg); ok {
			r.Args[i].Name, r.Args[i].Value = named.Name, named.Value
		}
	}
	return r
}

// end judges the statement, which wrote so many rows, or -1. What has not come to the server is as
// it was.
func (r *Raw) end(rows int64, err error) error {
	if err != nil && !dialect.FromServer(err) {
		return err
	}
	r.Affected, r.Err = rows, err
	return r.judge()
}

// Last reports whether no other statement was sent since, as may be while rows are open.
func (r *Raw) Last() bool { return r.conn.sent.Load() == r.nth }

// values returns the arguments without their names.
func (r *Raw) values() []any {
	values := make([]any, len(r.Args))
	for i, a := range r.Args {
		values[i] = a.Value
	}
	return values
}

// Send has the turn while send sends a statement to the driver's connection. send returns the
// number of rows that were written, or -1, and whether rows are open; Close ends these. If
// the driver wants the statement prepared, driver.ErrSkip, nothing was sent.
func (c *Conn) Send(ctx context.Context, query string, args []driver.NamedValue, send func(context.Context, driver.Conn) (affected int64, rows bool, err error)) (*Raw, error) {
	statements, err := c.admit(ctx, query, false)
	if err != nil {
		return nil, err
	}
	defer c.Give()
	c.Watcher.Ready(statements)
	r := &Raw{Query: query, Args: args, Statements: statements, Affected: -1, conn: c, nth: c.sent.Load()}
	ctx, cancel := c.within(ctx, false)
	rows := false
	r.Err = c.Driver(func(dc driver.Conn) (err error) {
		r.Affected, rows, err = send(ctx, dc)
		return err
	})
	if !rows {
		cancel() // rows need their context
	}
	if r.Err == driver.ErrSkip { //nolint:errorlint // the protocol's own value
		return nil, r.Err
	}
	c.Watcher.Took(query, r.values(), statements, r.Err)
	if rows {
		c.results.addRaw(1)
		return r, nil
	}
	err = r.judge()
	if ended := c.Watcher.LeaveRoutine(); ended != nil {
		err = errors.Join(ended, err)
	}
	return r, err
}

// judge judges a statement that has no rows, or no more.
func (r *Raw) judge() error {
	err := r.conn.Watcher.Judge(r)
	if err == nil && r.Affected >= 0 && r.Last() {
		r.conn.Watcher.Affected(r.Statements, r.Affected)
	}
	return err
}

// Failed returns the error that the reader of rows gets for err, which came with them. They
// are closed by then.
func (r *Raw) Failed(err error) error {
	if r.conn.Take(context.Background()) != nil { // the transaction is being ended
		return err
	}
	defer r.conn.Give()
	r.conn.Watcher.Learn(err)
	r.Affected, r.Err = -1, err
	return r.judge()
}

// Close is called once, when the rows of the statement are closed. read is how many there were,
// or -1 if that is not known; failed is set if Failed is called for them.
func (r *Raw) Close(read int64, failed bool) error {
	r.conn.results.addRaw(-1)
	if failed {
		return nil
	}
	r.Affected = read
	return r.judge()
}

// Driver calls f with the driver's connection. What f returns does not pass database/sql,
// which would close the connection for some errors.
func (c *Conn) Driver(f func(driver.Conn) error) (err error) {
	if c.Broken.Load() {
		return driver.ErrBadConn
	}
	c.Use()
	var failed error
	c.Watch(func() {
		failed = c.SQL().Raw(func(dc any) error {
			err = f(dc.(driver.Conn))
			return nil
		})
	})
	if failed != nil {
		return failed
	}
	return err
}
