package guard_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"sync/atomic"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/notify"
)

// touchyDriver is that of SQLite, but a COMMIT panics once when it is armed.
type touchyDriver struct {
	driver.Driver
	armed atomic.Bool
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
	if query == "COMMIT" && c.driver.armed.Swap(false) {
		panic("driver")
	}
	return c.sqliteConn.ExecContext(ctx, query, args)
}

// TestDriverPanicsInTheCommit: the row is as it was, the connection is not used again, and
// as the COMMIT may yet take effect, the key stays locked and an event says so.
func TestDriverPanicsInTheCommit(t *testing.T) {
	plain, err := sql.Open("sqlite", "")
	wantNil(t, err)
	d := &touchyDriver{Driver: plain.Driver()}
	wantNil(t, plain.Close())
	sql.Register("touchy", d)
	pool, err := sql.Open("touchy", filepath.Join(t.TempDir(), "test.db"))
	wantNil(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	pool.SetMaxOpenConns(1)
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: pool}))
	wantNil(t, err)
	wantNil(t, db.AutoMigrate(&Stock{}))
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
