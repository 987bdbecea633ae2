package promises_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/notify"
)

// touchyDriver is that of SQLite, but a statement panics once when it is armed.
type touchyDriver struct {
	driver.Driver
	at    string // how the statement begins
	armed atomic.Bool
	deaf  atomic.Bool // the answer to the next COMMIT is lost, and arms it
}

func (d *touchyDriver) Open(name string) (driver.Conn, error) {
	c, err := d.Driver.Open(name)
	if err != nil {
		return nil, err
	}
	return &touchyConn{c.(sqliteConn), d}, nil
}

type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

type touchyConn struct {
	sqliteConn
	driver *touchyDriver
}

func (c *touchyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.driver.touch(query)
	res, err := c.sqliteConn.ExecContext(ctx, query, args)
	if err == nil && query == "COMMIT" && c.driver.deaf.Swap(false) {
		c.driver.armed.Store(true)
		return nil, io.ErrUnexpectedEOF
	}
	return res, err
}

func (c *touchyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.driver.touch(query)
	return c.sqliteConn.QueryContext(ctx, query, args)
}

func (d *touchyDriver) touch(query string) {
	if strings.HasPrefix(query, d.at) && d.armed.Swap(false) {
		panic("driver")
	}
}

// openTouchy opens a database by a driver that panics at a statement, and a pool of n connections.
func openTouchy(t *testing.T, at string, n int) (*gorm.DB, *touchyDriver) {
	plain, err := sql.Open("sqlite", "")
	wantNil(t, err)
	d := &touchyDriver{Driver: plain.Driver(), at: at}
	wantNil(t, plain.Close())
	name := "touchy " + t.Name() + " " + rand.Text()
	sql.Register(name, d)
	pool, err := sql.Open(name, filepath.Join(t.TempDir(), "test.db"))
	wantNil(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	pool.SetMaxOpenConns(n)
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: pool}))
	wantNil(t, err)
	wantNil(t, db.AutoMigrate(&Stock{}))
	return db, d
}

// TestDriverPanicsInTheCommit: the row is as it was, the connection is not used again, and
// as the COMMIT may yet take effect, the key stays locked and an event says so.
func TestDriverPanicsInTheCommit(t *testing.T) {
	db, d := openTouchy(t, "COMMIT", 1)
	e := &env{Guard: guardtest.New(t, db), t: t, db: db}
	e.create(&Stock{ID: 1, Left: 9})
	row := Stock{ID: 1}
	func() {
		defer func() {
			if r := recover(); r != "driver" {
				t.Errorf("recovered %v", r)
			}
		}()
		d.armed.Store(true)
		_ = e.Apply(bg, "sku:1", guard.Update(&row, take))
	}()
	if row != (Stock{ID: 1}) {
		t.Errorf("the row is %+v", row)
	}
	other := e.Peer(t, db)
	for _, g := range []*guard.Guard{e.Guard.Guard, other} {
		wantIs(t, g.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take)), guard.ErrBusy)
	}
	e.wantEvent(notify.VerdictUnknownCommit, notify.OutcomeUnknown, "sku:1")
	e.Forget("sku:1") // its ttl has passed
	wantNil(t, other.Apply(bg, "sku:1", guard.Update(&row, take)))
	if row.Left != 8 || row.Version != 2 {
		t.Errorf("the row is %+v", row)
	}
}
