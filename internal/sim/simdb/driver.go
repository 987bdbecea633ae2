package simdb

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// A Gate decides when a call runs, and what becomes of it.
type Gate interface {
	// Pass blocks until the call may run, or ctx ends.
	Pass(ctx context.Context, c Call) Fate
}

// A Witness is a Gate that sees answers, too.
type Witness interface {
	// Answered is called once a call that was executed has its answer. affected counts rows
	// that it has written.
	Answered(c Call, affected int64, err error)
}

// A Call is what a connection is about to send.
type Call struct {
	Process string
	Conn    int    // number of the connection, from 1 on in each database
	Session int64  // of the server; 0 if there is none yet
	Text    string // the statement, or CONNECT, PING, CANCEL
	Args    []any
	Flush   bool // the server makes a COMMIT durable, whose writes are visible
	Commit  bool // it is a COMMIT, or a write outside of a transaction
	Tx      bool // it is in a transaction of database/sql, which holds a mutex while it waits for the answer
}

// Fate is what becomes of a call.
type Fate int

const (
	// Execute executes the call.
	Execute Fate = iota
	// CutBefore ends the connection. The call is not executed, and the session ends.
	CutBefore
	// CutAfter executes the call and ends the connection. The answer is lost.
	CutAfter
	// Late ends the connection for the client. The server executes the call at ExecuteLate;
	// until then the session lives, with its locks.
	Late
	// Refuse has a COMMIT fail, as one may that meets a deadlock or cannot be serialized. The
	// transaction is rolled back.
	Refuse
	// RefuseAfter executes a COMMIT, and answers that error all the same.
	RefuseAfter
)

type lateCall struct {
	call    Call
	session *session
	args    []any
}

// Connector returns a connector for the connections of a process.
func (db *Database) Connector(process string, g Gate) driver.Connector {
	return connector{db: db, process: process, gate: g}
}

// SecondConnector is Connector for the second node: plain reads see what it has applied.
func (db *Database) SecondConnector(process string, g Gate) driver.Connector {
	return connector{db: db, process: process, gate: g, second: true}
}

type connector struct {
	db      *Database
	process string
	gate    Gate
	second  bool
}

func (c connector) Driver() driver.Driver { return nil }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	fate := c.gate.Pass(ctx, Call{Process: c.process, Text: "CONNECT"})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var made *conn
	c.db.with(func() {
		if c.db.up && fate == Execute {
			c.db.conns++
			made = &conn{connector: c, number: c.db.conns}
			if c.db.knobs.Pooler == 0 {
				made.open()
			}
			c.db.clients = append(c.db.clients, made)
		}
	})
	if made == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return made, nil
}

// A conn is a connection as its client has it.
type conn struct {
	connector
	number  int
	session *session    // nil while a pooler has given it none
	tx      bool        // it is in a transaction of database/sql
	dead    atomic.Bool // the client knows that it is
}

// open begins a session at the server.
func (c *conn) open() {
	s := c.db.newSession()
	s.second = c.second
	s.flush = func() {
		c.gate.Pass(context.Background(), Call{Process: c.process, Conn: c.number, Session: s.id, Text: "COMMIT", Flush: true})
	}
	c.session = s
}

// do sends a statement and waits for its result.
func (c *conn) do(ctx context.Context, sql string, args []driver.NamedValue) (*result, error) {
	if c.dead.Load() {
		return nil, driver.ErrBadConn
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	values := make([]any, len(args))
	for i, a := range args {
		values[i] = a.Value
	}
	call := Call{Process: c.process, Conn: c.number, Text: sql, Args: values, Commit: sql == "COMMIT", Tx: c.tx}
	c.db.with(func() {
		if s := c.session; s != nil {
			call.Session = s.id
			call.Commit = call.Commit || s.tx == nil && c.db.writes(sql)
		}
	})
	switch fate := c.gate.Pass(ctx, call); {
	case ctx.Err() != nil && fate != Late && fate != CutAfter:
		c.cut()
		return nil, c.ended(ctx)
	case fate == CutBefore:
		c.cut()
		return nil, c.db.brokenError()
	case fate == Late, fate == CutAfter && ctx.Err() != nil:
		c.leave(lateCall{call, c.acquire(ctx), values}, fate == CutAfter)
		return nil, cmp.Or(c.ended(ctx), c.db.brokenError())
	case fate == CutAfter:
		_, _ = c.send(ctx, sql, values)
		c.cut()
		return nil, cmp.Or(c.ended(ctx), c.db.brokenError())
	case fate == Refuse || fate == RefuseAfter:
		if fate == Refuse {
			sql = "ROLLBACK"
		}
		if _, err := c.send(ctx, sql, values); err != nil {
			return nil, err
		}
		return nil, c.db.commitError()
	}
	res, err := c.send(ctx, sql, values)
	if w, ok := c.gate.(Witness); ok {
		affected := int64(0)
		if res != nil {
			affected = res.affected
		}
		w.Answered(call, affected, err)
	}
	return res, err
}

// leave ends the connection for the client, while the session goes on to execute a call, now
// or later.
func (c *conn) leave(l lateCall, now bool) {
	c.db.with(func() {
		c.dead.Store(true)
		switch {
		case l.session == nil:
		case now:
			l.execute()
		default:
			c.db.late = append(c.db.late, l)
		}
	})
}

// execute executes a call whose client has gone, and ends its session. It does not wait for
// that.
func (l lateCall) execute() {
	go func() {
		l.session.call(l.call.Text, l.args)
		l.session.db.with(func() { l.session.db.endSession(l.session) })
	}()
}

// ended returns the error of a context that has ended.
func (c *conn) ended(ctx context.Context) error {
	err := ctx.Err()
	if err != nil && c.db.postgres() {
		err = fmt.Errorf("timeout: %w", err)
	}
	return err
}

// send has the server execute a statement. If ctx ends before, the client goes. The server
// notices when it has executed the statement, but pgx sends a request to cancel it.
func (c *conn) send(ctx context.Context, sql string, args []any) (*result, error) {
	s := c.acquire(ctx)
	if s == nil {
		c.cut()
		return nil, cmp.Or(c.ended(ctx), c.db.brokenError())
	}
	done := make(chan *result, 1)
	go func() {
		res := s.call(sql, args)
		c.db.with(func() { c.release(s) })
		done <- res
	}()
	select {
	case res := <-done:
		if res.gone {
			c.dead.Store(true)
			return nil, cmp.Or(res.err, c.db.brokenError())
		}
		return res, res.err
	case <-ctx.Done():
		c.cut()
		if c.db.postgres() {
			go c.cancel(s) //nolint:gosec // the context has ended
		}
		return nil, c.ended(ctx)
	}
}

// cancel ends what a session waits for.
func (c *conn) cancel(s *session) {
	if c.gate.Pass(context.Background(), Call{Process: c.process, Conn: c.number, Session: s.id, Text: "CANCEL"}) == Execute {
		c.db.with(func() { c.db.kill(s, nil) })
	}
}

// cut ends the connection on both sides.
func (c *conn) cut() {
	c.db.with(func() {
		c.dead.Store(true)
		c.db.clients = slices.DeleteFunc(c.db.clients, func(o *conn) bool { return o == c })
		s := c.session
		if s == nil || slices.ContainsFunc(c.db.late, func(l lateCall) bool { return l.session == s }) {
			return
		}
		c.db.endSession(s)
	})
}

// Late returns the calls that the server has yet to execute.
func (db *Database) Late() (calls []Call) {
	db.with(func() {
		for _, l := range db.late {
			calls = append(calls, l.call)
		}
	})
	return calls
}

// ExecuteLate executes the n-th of them, and ends its session. It does not wait for that.
func (db *Database) ExecuteLate(n int) {
	db.with(func() {
		l := db.late[n]
		db.late = slices.Delete(db.late, n, n+1)
		l.execute()
	})
}

// KillProcess ends all connections of a process. Its statements that wait are not
// cancelled.
func (db *Database) KillProcess(process string) {
	var own []*conn
	db.with(func() {
		for _, c := range db.clients {
			if c.process == process {
				own = append(own, c)
			}
		}
	})
	for _, c := range own {
		c.cut()
	}
}

// Close implements driver.Conn.
func (c *conn) Close() error {
	if !c.dead.Load() {
		c.cut()
	}
	return nil
}

// ResetSession implements driver.SessionResetter: go-sql-driver looks whether the server
// has closed the connection, pgx only if that was idle for a second.
func (c *conn) ResetSession(context.Context) error {
	stale := c.dead.Load()
	c.db.with(func() { stale = stale || !c.db.postgres() && c.session != nil && c.session.ended })
	if stale {
		return driver.ErrBadConn
	}
	return nil
}

// IsValid implements driver.Validator.
func (c *conn) IsValid() bool { return !c.dead.Load() }

// Ping implements driver.Pinger.
func (c *conn) Ping(ctx context.Context) error {
	_, err := c.do(ctx, "PING", nil)
	return err
}

// Prepare implements driver.Conn.
func (c *conn) Prepare(sql string) (driver.Stmt, error) {
	panic(errUnknown.Error() + " to prepare: " + sql)
}

// Begin implements driver.Conn.
func (c *conn) Begin() (driver.Tx, error) { panic(errUnknown.Error() + ": Begin") }

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	committed := driver.TxOptions{Isolation: driver.IsolationLevel(sql.LevelReadCommitted)}
	switch {
	case o == (driver.TxOptions{}):
	case o == committed && !c.db.postgres():
		if _, err := c.do(ctx, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", nil); err != nil {
			return nil, err
		}
	default:
		panic(fmt.Sprint(errUnknown, ": BEGIN with ", o))
	}
	sql := "START TRANSACTION"
	if c.db.postgres() {
		sql = "BEGIN"
	}
	_, err := c.do(ctx, sql, nil)
	c.tx = err == nil
	return c, err
}

// Commit implements driver.Tx.
func (c *conn) Commit() error {
	c.tx = false
	_, err := c.do(context.Background(), "COMMIT", nil)
	return err
}

// Rollback implements driver.Tx.
func (c *conn) Rollback() error {
	c.tx = false
	_, err := c.do(context.Background(), "ROLLBACK", nil)
	return err
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, sql string, args []driver.NamedValue) (driver.Result, error) {
	return c.do(ctx, sql, args)
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, sql string, args []driver.NamedValue) (driver.Rows, error) {
	res, err := c.do(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return &rows{result: res}, nil
}

// CheckNamedValue implements driver.NamedValueChecker.
func (c *conn) CheckNamedValue(v *driver.NamedValue) (err error) {
	v.Value, err = driver.DefaultParameterConverter.ConvertValue(v.Value)
	switch value := v.Value.(type) {
	case []byte:
		v.Value = string(value)
	case time.Time:
		v.Value = value.UTC().Round(time.Microsecond)
	}
	return err
}
