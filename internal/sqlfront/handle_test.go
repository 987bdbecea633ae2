package sqlfront_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	_ "github.com/mattn/go-sqlite3"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/dbtx/pinned"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const schema = "CREATE TABLE sales (no TEXT NOT NULL PRIMARY KEY)"

var bg = context.Background()

// TestPoolOfOne: an operation and its handle take one connection of the pool.
func TestPoolOfOne(t *testing.T) {
	g := guardtest.OpenSQL(t, "sqlite", schema)
	pool, err := g.DB.DB()
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(1)
	err = g.DoSQL(bg, "sale:1", func(ctx context.Context, tx *sql.Tx) error {
		st, err := g.Pool().PrepareContext(ctx, "INSERT INTO sales (no) VALUES (?)")
		if err != nil {
			return err
		}
		defer st.Close()
		if _, err := st.ExecContext(ctx, "1"); err != nil {
			return err
		}
		_, err = tx.StmtContext(ctx, st).ExecContext(ctx, "2")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := pool.QueryRow("SELECT COUNT(*) FROM sales").Scan(&n); err != nil || n != 2 {
		t.Errorf("%d sales, %v", n, err)
	}
}

// TestRowsOfTheHandle: rows that a program leaves open are closed with the operation, which is
// rolled back. The connection is fit for the next one.
func TestRowsOfTheHandle(t *testing.T) {
	for _, driver := range []string{"sqlite", "sqlite3"} {
		t.Run(driver, func(t *testing.T) {
			g := guardtest.OpenSQL(t, driver, schema, "INSERT INTO sales (no) VALUES ('1'), ('2')")
			pool, err := g.DB.DB()
			if err != nil {
				t.Fatal(err)
			}
			pool.SetMaxOpenConns(1)
			var rows *sql.Rows
			err = g.DoSQL(bg, "sale:3", func(ctx context.Context, tx *sql.Tx) (err error) {
				if _, err := tx.ExecContext(ctx, "INSERT INTO sales (no) VALUES ('3')"); err != nil {
					return err
				}
				rows, err = g.Pool().QueryContext(context.WithoutCancel(ctx), "SELECT no FROM sales")
				if err == nil && !rows.Next() {
					t.Error("there is no row")
				}
				return err
			})
			if !errors.Is(err, pinned.ErrRowsOpen) {
				t.Errorf("err = %v, want ErrRowsOpen", err)
			}
			if rows.Next() {
				t.Error("the rows go on after the operation")
			}
			if err := rows.Close(); err != nil {
				t.Error(err)
			}
			var n int
			if err := pool.QueryRow("SELECT COUNT(*) FROM sales").Scan(&n); err != nil || n != 2 {
				t.Errorf("%d sales, %v", n, err)
			}
			if _, err := pool.Exec("DROP TABLE sales"); err != nil { // refused while rows of it are open
				t.Error(err)
			}
		})
	}
}

// TestCancelled: a statement whose context has ended ends the operation, and nothing of it
// remains.
func TestCancelled(t *testing.T) {
	g := guardtest.OpenSQL(t, "sqlite", schema)
	err := g.DoSQL(bg, "sale:1", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO sales (no) VALUES ('1')"); err != nil {
			return err
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err := tx.ExecContext(ended, "INSERT INTO sales (no) VALUES ('2')")
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want that of the context", err)
	}
	var n int
	if err := g.DB.Raw("SELECT COUNT(*) FROM sales").Scan(&n).Error; err != nil || n != 0 {
		t.Errorf("%d sales, %v", n, err)
	}
}

// breaking is a driver whose next statement breaks, or panics, on order.
type breaking struct {
	driver.Driver
	how atomic.Pointer[func() error]
}

func (b *breaking) Open(name string) (driver.Conn, error) {
	conn, err := b.Driver.Open(name)
	if err != nil {
		return nil, err
	}
	return &breakingConn{conn.(everything), b}, nil
}

// everything is what the connections of modernc's driver can do.
type everything interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

type breakingConn struct {
	everything
	of *breaking
}

func (c *breakingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if how := c.of.how.Swap(nil); how != nil {
		if err := (*how)(); err != nil {
			return nil, err
		}
	}
	return c.everything.ExecContext(ctx, query, args)
}

var broken = register()

func register() *breaking {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	b := &breaking{Driver: db.Driver()}
	_ = db.Close()
	sql.Register("breaking", b)
	return b
}

// TestBadConnection: a connection that breaks is not tried again by database/sql, whose
// statement would run alone.
func TestBadConnection(t *testing.T) {
	for name, broke := range map[string]error{"bad": driver.ErrBadConn, "cut": io.ErrUnexpectedEOF} {
		t.Run(name, func(t *testing.T) {
			g := guardtest.OpenSQL(t, "breaking", schema)
			how := func() error { return broke }
			insert := func(ctx context.Context, no string) error {
				_, err := g.Pool().ExecContext(ctx, "INSERT INTO sales (no) VALUES (?)", no)
				return err
			}
			err := g.DoSQL(bg, "sale:1", func(ctx context.Context, _ *sql.Tx) error {
				if err := insert(ctx, "1"); err != nil {
					return err
				}
				broken.how.Store(&how)
				if err := insert(ctx, "2"); err == nil {
					t.Error("a broken statement returned no error")
				}
				return nil // the operation does not look
			})
			if err == nil {
				t.Error("an operation was committed on a broken connection")
			}
			var n int
			if err := g.DB.Raw("SELECT COUNT(*) FROM sales").Scan(&n).Error; err != nil || n != 0 {
				t.Errorf("%d sales, %v", n, err)
			}
		})
	}
}

// TestDriverPanics: the panic goes on, and nothing of the operation remains.
func TestDriverPanics(t *testing.T) {
	g := guardtest.OpenSQL(t, "breaking", schema)
	sell := func(no string) error {
		return g.DoSQL(bg, "sale:"+no, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO sales (no) VALUES (?)", no)
			return err
		}, guard.Protects(guard.Row("sales", "no", no)))
	}
	how := func() error { panic("the driver") }
	func() {
		defer func() {
			if r := recover(); r != "the driver" {
				t.Errorf("recovered %v", r)
			}
		}()
		_ = g.DoSQL(bg, "sale:1", func(ctx context.Context, tx *sql.Tx) error {
			broken.how.Store(&how)
			_, err := tx.ExecContext(ctx, "INSERT INTO sales (no) VALUES ('1')")
			return err
		})
	}()
	if err := sell("1"); err != nil {
		t.Errorf("after the panic: %v", err)
	}
	if err := sell("1"); !errors.Is(err, guard.ErrDuplicate) {
		t.Errorf("err = %v, want ErrDuplicate", err)
	}
}
