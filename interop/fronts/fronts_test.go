// Package fronts_test shows that GORM, pgx and libraries over database/sql work in an operation: one
// suite for all of them, on each database and driver.
package fronts_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	_ "github.com/mattn/go-sqlite3"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify"
)

// passed and failed count the checks.
var passed, failed atomic.Int64

func TestMain(m *testing.M) {
	teststack.Quiet()
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	fmt.Fprintf(os.Stdout, "belay fronts: %d fronts, %d checks passed, %d failed\n", len(fronts), passed.Load(), failed.Load())
	os.Exit(code)
}

// A shop is what a front makes of the operations of the suite.
type shop interface {
	// sell inserts a sale.
	sell(ctx context.Context, no string) error
	// take updates an item by its version, and returns how many rows it wrote.
	take(ctx context.Context, version int64) (int64, error)
	// undo sells in a transaction of the front's own, and rolls that back.
	undo(ctx context.Context, no string) error
}

// An operator is a shop that begins operations in a way of its own.
type operator interface {
	operate(ctx context.Context, g *guard.Guard, key string, op func(context.Context) error, opts ...guard.Option) error
}

// operate runs an operation of a shop.
func operate(ctx context.Context, s shop, g *guard.Guard, key string, op func(context.Context) error, opts ...guard.Option) error {
	if own, ok := s.(operator); ok {
		return own.operate(ctx, g, key, op, opts...)
	}
	return g.DoSQL(ctx, key, func(ctx context.Context, _ *sql.Tx) error { return op(ctx) }, opts...)
}

// A database is one that is reached by a driver.
type database struct {
	driver, dialect string // as database/sql and ent name them
	dsn             func(testing.TB) string
	marks           bool // arguments are marked by $1
}

func file(pragmas string) func(testing.TB) string {
	return func(t testing.TB) string {
		t.Helper()
		return "file:" + filepath.ToSlash(filepath.Join(t.TempDir(), "test.db")) + pragmas
	}
}

var databases = map[string]database{
	"mariadb":          {"mysql", "mysql", teststack.MySQL, false},
	"mysql":            {"mysql", "mysql", teststack.MySQL9, false},
	"mysql 8.0":        {"mysql", "mysql", teststack.MySQL80, false},
	"postgres by pgx":  {"pgx", "postgres", teststack.Postgres, true},
	"postgres 18":      {"pgx", "postgres", teststack.Postgres18, true},
	"postgres by pq":   {"postgres", "postgres", teststack.Postgres, true},
	"sqlite by mattn":  {"sqlite3", "sqlite3", file("?_busy_timeout=10000&_journal_mode=WAL"), false},
	"sqlite by modern": {"sqlite", "sqlite3", file("?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"), false},
}

// mark spells the marks of arguments, ?, as the database has them.
func (d database) mark(query string) string {
	if !d.marks {
		return query
	}
	for n := 1; strings.Contains(query, "?"); n++ {
		query = strings.Replace(query, "?", fmt.Sprintf("$%d", n), 1)
	}
	return query
}

// check runs one check.
func check(t *testing.T, name string, f func() error) {
	t.Helper()
	if err := f(); err != nil {
		failed.Add(1)
		t.Errorf("%s: %v", name, err)
		return
	}
	passed.Add(1)
}

// TestFronts runs the suite.
func TestFronts(t *testing.T) {
	for on, d := range databases {
		t.Run(on, func(t *testing.T) {
			pool, err := sql.Open(d.driver, d.dsn(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { pool.Close() })
			for _, statement := range []string{
				"DROP TABLE IF EXISTS sales", "DROP TABLE IF EXISTS items",
				"CREATE TABLE sales (no VARCHAR(64) NOT NULL PRIMARY KEY, buyer VARCHAR(64) NOT NULL)",
				"CREATE TABLE items (id BIGINT NOT NULL PRIMARY KEY, stock BIGINT NOT NULL, version BIGINT NOT NULL DEFAULT 1)",
			} {
				if _, err := pool.Exec(statement); err != nil {
					t.Fatal(err)
				}
			}
			db, err := dbguard.Open(t.Context(), pool)
			if err != nil {
				t.Fatal(err)
			}
			for name, open := range fronts {
				t.Run(name, func(t *testing.T) {
					db := db
					if name == "gorm" {
						db = openGorm(t, d, pool)
					}
					g := guardtest.New(t, db)
					s := open(t, g.Guard, d)
					if s == nil {
						return
					}
					suite(t, g, pool, d, s, strings.ReplaceAll(name, " ", "-")+"/")
				})
			}
		})
	}
}

func suite(t *testing.T, g *guardtest.Guard, pool *sql.DB, d database, s shop, prefix string) {
	ctx := t.Context()
	no := func(n string) string { return prefix + n }
	count := func() (n int64) {
		if err := pool.QueryRow(d.mark("SELECT COUNT(*) FROM sales WHERE no LIKE ?"), prefix+"%").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	sell := func(g *guard.Guard, n string) error {
		return operate(ctx, s, g, "sale:"+no(n), func(ctx context.Context) error { return s.sell(ctx, no(n)) },
			guard.Protects(guard.Row("sales", "no", no(n))))
	}
	check(t, "a sale", func() error { return sell(g.Guard, "1") })
	check(t, "its repeat", func() error { return want(sell(g.Guard, "1"), guard.ErrDuplicate) })
	check(t, "the row of another key", func() error {
		err := operate(ctx, s, g.Guard, "sale:"+no("2"), func(ctx context.Context) error { return s.sell(ctx, no("1")) },
			guard.Protects(guard.Row("sales", "no", no("2"))))
		if err == nil || errors.Is(err, guard.ErrDuplicate) {
			return fmt.Errorf("want another error than: %w", err)
		}
		return nil
	})
	check(t, "an error that rolls back", func() error {
		mine := errors.New("mine")
		return want(operate(ctx, s, g.Guard, "sale:"+no("3"), func(ctx context.Context) error {
			return errors.Join(s.sell(ctx, no("3")), mine)
		}), mine)
	})
	check(t, "a transaction inside", func() error {
		return operate(ctx, s, g.Guard, "sale:"+no("4"), func(ctx context.Context) error {
			return errors.Join(s.undo(ctx, no("5")), s.sell(ctx, no("4")))
		})
	})
	if _, alone := s.(gormShop); !alone { // GORM goes on without a guard there
		check(t, "outside", func() error { return want(s.sell(ctx, no("6")), dbguard.ErrOutside) })
	}
	check(t, "what is there", func() error {
		if n := count(); n != 2 {
			return fmt.Errorf("%d sales, want 2", n)
		}
		return nil
	})
	updates(t, g, pool, d, s)
	if d.dialect == "sqlite3" {
		return // nobody writes while another transaction does
	}
	check(t, "an overlap", func() error {
		err := operate(ctx, s, g.Guard, "sale:"+no("7"), func(ctx context.Context) error {
			tx, err := guard.SQL(ctx)
			if err != nil {
				return err
			}
			var n int64
			if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM sales").Scan(&n); err != nil {
				return err
			}
			g.Forget("sale:" + no("7"))
			if err := sell(g.Peer(t, g.DB), "7"); err != nil {
				return err
			}
			return s.sell(ctx, no("7"))
		}, guard.Protects(guard.Row("sales", "no", no("7"))))
		events := g.Events.All()
		if len(events) != 1 || events[0].Verdict != notify.VerdictOverlap {
			return fmt.Errorf("events %+v, want one overlap", events)
		}
		return want(err, guard.ErrIntercepted)
	})
}

// updates checks updates by version.
func updates(t *testing.T, g *guardtest.Guard, pool *sql.DB, d database, s shop) {
	if _, err := pool.Exec("DELETE FROM items"); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec("INSERT INTO items (id, stock) VALUES (7, 10)"); err != nil {
		t.Fatal(err)
	}
	item := guard.Row("items", "id", 7)
	take := func(version int64) error {
		return operate(t.Context(), s, g.Guard, "item:7", func(ctx context.Context) error {
			n, err := s.take(ctx, version)
			return guard.Changed(ctx, item, version, n, err)
		}, guard.Protects(item))
	}
	check(t, "an update", func() error { return take(1) })
	check(t, "an update of an old version", func() error { return want(take(1), guard.ErrStale) })
}

func want(err, target error) error {
	if errors.Is(err, target) {
		return nil
	}
	return fmt.Errorf("want %w, not: %w", target, err)
}
