package sqllock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/belaygo/belay/lock/lockengine"
)

// A fakeDriver answers each statement with its next error, and with nothing after that.
type fakeDriver struct {
	errs       []error
	statements int
	dials      int
	late       bool // the errors come with the rows
	panics     bool // at the next statement
}

func (d *fakeDriver) Connect(context.Context) (driver.Conn, error) {
	d.dials++
	return &fakeConn{d}, nil
}
func (d *fakeDriver) Driver() driver.Driver { return nil }

func (d *fakeDriver) next() (err error) {
	d.statements++
	if d.panics {
		d.panics = false
		panic("a driver")
	}
	if len(d.errs) > 0 {
		err, d.errs = d.errs[0], d.errs[1:]
	}
	return err
}

type fakeConn struct{ d *fakeDriver }

func (c *fakeConn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (c *fakeConn) Begin() (driver.Tx, error)           { return nil, errors.ErrUnsupported }
func (c *fakeConn) Close() error                        { return nil }

func (c *fakeConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), c.d.next()
}

func (c *fakeConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	err := c.d.next()
	if c.d.late {
		return fakeRows{err}, nil
	}
	return fakeRows{}, err
}

type fakeRows struct{ err error }

func (r fakeRows) Columns() []string         { return []string{"token"} }
func (r fakeRows) Close() error              { return nil }
func (r fakeRows) Next([]driver.Value) error { return r.err }

func openFake(t *testing.T, d *fakeDriver) Engine {
	t.Helper()
	pool := sql.OpenDB(d)
	t.Cleanup(func() { _ = pool.Close() })
	return openOn(t, pool)
}

func openOn(t *testing.T, pool *sql.DB) Engine {
	t.Helper()
	e, err := New(pool, Postgres, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

// If a driver has not sent a statement, database/sql may repeat it. If the driver fails while it
// reads the answer, the statement was sent.
func TestBadConnection(t *testing.T) {
	mine := lockengine.Request{Key: "k", Owner: "me:1"}
	d := &fakeDriver{errs: []error{driver.ErrBadConn, driver.ErrBadConn}}
	if err := openFake(t, d).Release(t.Context(), mine); err != nil || d.statements != 3 {
		t.Errorf("Release on the third connection: %v, %d statements", err, d.statements)
	}
	d = &fakeDriver{errs: []error{driver.ErrBadConn, driver.ErrBadConn, driver.ErrBadConn}}
	if err := openFake(t, d).Release(t.Context(), mine); !errors.Is(err, lockengine.ErrNotSent) || d.statements != 3 {
		t.Errorf("Release on no connection: %v, %d statements", err, d.statements)
	}
	d = &fakeDriver{errs: []error{driver.ErrBadConn}, late: true}
	_, err := openFake(t, d).Acquire(t.Context(), mine, time.Minute)
	if !errors.Is(err, lockengine.ErrNoAnswer) || errors.Is(err, lockengine.ErrNotSent) || d.statements != 1 {
		t.Errorf("Acquire without an answer: %v, %d statements", err, d.statements)
	}
}

// If a server rejects a statement because it is read-only, the next statement uses a new connection,
// which may lead to another server. The statement itself is sent once.
func TestSpentConnection(t *testing.T) {
	for _, tt := range []struct {
		err   error
		spent bool
	}{
		{&mysql.MySQLError{Number: 1047}, true},
		{&mysql.MySQLError{Number: 1290}, true},
		{&mysql.MySQLError{Number: 1690}, true},
		{&mysql.MySQLError{Number: 1792}, true},
		{&mysql.MySQLError{Number: 1836}, true},
		{&pgconn.PgError{Code: "25006"}, true},
		{&mysql.MySQLError{Number: 1213}, false},
		{&pgconn.PgError{Code: "40001"}, false},
	} {
		d := &fakeDriver{errs: []error{tt.err}}
		e := openFake(t, d)
		mine := lockengine.Request{Key: "k", Owner: "me:1"}
		if err := e.Release(t.Context(), mine); !errors.Is(err, tt.err) || !errors.Is(err, lockengine.ErrNotSent) || d.statements != 1 {
			t.Errorf("%v: Release: %v, %d statements", tt.err, err, d.statements)
		}
		if err := e.Release(t.Context(), mine); err != nil || (d.dials == 2) != tt.spent {
			t.Errorf("%v: the next one: %v, %d connections", tt.err, err, d.dials)
		}
	}
}

// TestPanicOfADriver: a driver that panics as it executes a statement costs the request of its caller, who
// may recover, and no connection of the pool. In a query it costs a place in the pool, too: database/sql
// takes the query for one that still runs.
func TestPanicOfADriver(t *testing.T) {
	d := &fakeDriver{panics: true}
	pool := sql.OpenDB(d)
	pool.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = pool.Close() })
	e := openOn(t, pool)
	mine := lockengine.Request{Key: "k", Owner: "me:1"}
	func() {
		defer func() { _ = recover() }() // as net/http does
		_ = e.Release(t.Context(), mine)
		t.Error("the caller learns nothing")
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := e.Release(ctx, mine); err != nil || d.dials != 2 {
		t.Errorf("the next one: %v, %d connections", err, d.dials)
	}
}
