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

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/testwait"
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
		in := tx.StmtContext(ctx, st)
		defer in.Close()
		_, err = in.ExecContext(ctx, "2")
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
				rows, err = g.Pool().QueryContext(context.WithoutCancel(ctx), "SELECT no FROM sales") //nolint:rowserrcheck,sqlclosecheck // they are left open
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

// wantUsable wants that nothing of earlier operations on a key remains, and that the next one
// works.
func wantUsable(t *testing.T, g *guardtest.Guard) {
	t.Helper()
	sell := func() error {
		return g.DoSQL(bg, "sale:1", func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO sales (no) VALUES ('1')")
			return err
		}, guard.Protects(guard.Row("sales", "no", "1")))
	}
	if err := sell(); err != nil {
		t.Errorf("the next operation: %v", err)
	}
	if err := sell(); !errors.Is(err, guard.ErrDuplicate) {
		t.Errorf("its repeat: %v, want ErrDuplicate", err)
	}
}

type panics struct{}

func (panics) Value() (driver.Value, error) { panic("a value") }
func (panics) Scan(any) error               { panic("a scanner") }

// TestPanics: a panic of the driver, or in a value of the program, holds nothing up. The operation is
// not committed, also if it goes on.
func TestPanics(t *testing.T) {
	inDriver := func() error { panic("the driver") }
	for name, do := range map[string]func(ctx context.Context, tx *sql.Tx) error{
		"driver": func(ctx context.Context, tx *sql.Tx) error {
			broken.how.Store(&inDriver)
			_, err := tx.ExecContext(ctx, "INSERT INTO sales (no) VALUES ('1')")
			return err
		},
		"value": func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO sales (no) VALUES (?)", panics{})
			return err
		},
		"value in a query": func(ctx context.Context, tx *sql.Tx) error {
			var no string
			return tx.QueryRowContext(ctx, "SELECT no FROM sales WHERE no = ?", panics{}).Scan(&no)
		},
		"value of a prepared one": func(ctx context.Context, tx *sql.Tx) error {
			st, err := tx.PrepareContext(ctx, "INSERT INTO sales (no) VALUES (?)")
			if err != nil {
				return err
			}
			defer st.Close()
			_, err = st.ExecContext(ctx, panics{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := guardtest.OpenSQL(t, "breaking", schema)
			err := g.DoSQL(bg, "sale:1", func(ctx context.Context, tx *sql.Tx) error {
				if _, err := tx.ExecContext(ctx, "INSERT INTO sales (no) VALUES ('0')"); err != nil {
					return err
				}
				if err := do(ctx, tx); !errors.Is(err, pinned.ErrPanic) {
					t.Errorf("err = %v, want ErrPanic", err)
				}
				return nil // the operation does not look
			})
			if !errors.Is(err, pinned.ErrPanic) {
				t.Errorf("err = %v, want ErrPanic", err)
			}
			wantUsable(t, g)
		})
	}
}

// TestNestedIsInnermost: while a nested transaction is open, no statement lands in it by mistake,
// which its rollback would undo.
func TestNestedIsInnermost(t *testing.T) {
	g := guardtest.OpenSQL(t, "sqlite", schema)
	err := g.DoSQL(bg, "sale:0", func(ctx context.Context, tx *sql.Tx) error {
		sub, cancel := context.WithCancel(ctx)
		defer cancel()
		in, err := g.Pool().BeginTx(sub, nil)
		if err != nil {
			return err
		}
		if _, err := in.ExecContext(ctx, "INSERT INTO sales (no) VALUES ('in')"); err != nil {
			return err
		}
		for name, exec := range map[string]func(context.Context, string, ...any) (sql.Result, error){
			"the operation's": tx.ExecContext, "the pool's": g.Pool().ExecContext,
		} {
			if _, err := exec(ctx, "INSERT INTO sales (no) VALUES ('out')"); err == nil {
				t.Errorf("%s statement was sent within the nested transaction", name)
			}
		}
		cancel() // database/sql rolls the nested one back, some time later
		testwait.Until(t, "the nested transaction ends", func() bool {
			_, err := tx.ExecContext(ctx, "INSERT INTO sales (no) VALUES ('out')")
			return err == nil
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var no string
	if err := g.DB.Raw("SELECT group_concat(no) FROM sales").Scan(&no).Error; err != nil || no != "out" {
		t.Errorf("sales are %q, %v, want that of the operation", no, err)
	}
}

// TestUncounted: a statement whose rows are not counted, or that returned none, is judged as one
// that wrote none, or not at all.
func TestUncounted(t *testing.T) {
	g := guardtest.OpenSQL(t, "sqlite", "CREATE TABLE items (id INTEGER PRIMARY KEY, version INTEGER NOT NULL DEFAULT 1)")
	row := guard.Row("items", "id", 1)
	for name, judge := range map[string]func(ctx context.Context, n int64, err error) error{
		"Changed":  func(ctx context.Context, n int64, err error) error { return guard.Changed(ctx, row, 1, n, err) },
		"Inserted": func(ctx context.Context, n int64, err error) error { return guard.Inserted(ctx, row, n, err) },
	} {
		err := g.DoSQL(bg, "item:1", func(ctx context.Context, _ *sql.Tx) error { return judge(ctx, 1, sql.ErrNoRows) })
		if _, refused := errors.AsType[*dbguard.ConflictError](err); !refused {
			t.Errorf("%s of sql.ErrNoRows: %v", name, err)
		}
		err = g.DoSQL(bg, "item:1", func(ctx context.Context, _ *sql.Tx) error { return judge(ctx, -1, nil) })
		if _, refused := errors.AsType[*dbguard.ConflictError](err); err == nil || refused {
			t.Errorf("%s of -1 rows: %v", name, err)
		}
	}
}

// TestOutsideTakesOne: the queries that a library asks outside of operations take one connection of
// the pool, and call no function of the program's.
func TestOutsideTakesOne(t *testing.T) {
	g := guardtest.OpenSQL(t, "sqlite", schema)
	pool, err := g.DB.DB()
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(1)
	conn, err := g.Pool().Conn(bg)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var version string
		if err := conn.QueryRowContext(bg, "SELECT sqlite_version()").Scan(&version); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if n := pool.Stats().InUse; n != 0 {
		t.Errorf("%d connections are in use", n)
	}
	for _, query := range []string{"SELECT place_order(1)", "SELECT nextval('s')", "SELECT get_lock('a', 1)", "SELECT 1 FROM sales", "SELECT 1; DELETE FROM sales"} {
		var n any
		if err := g.Pool().QueryRowContext(bg, query).Scan(&n); !errors.Is(err, dbguard.ErrOutside) {
			t.Errorf("%s: %v, want ErrOutside", query, err)
		}
	}
}
