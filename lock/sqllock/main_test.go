package sqllock_test

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver named pgx
	"go.uber.org/goleak"
	_ "modernc.org/sqlite" // the driver named sqlite

	"github.com/belaygo/belay/internal/lockhistory"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/sqllock"
)

func TestMain(m *testing.M) {
	lockhistory.Main(func(dsn string) (lockengine.Engine, func(), error) {
		pool, d, err := connect(dsn)
		if err != nil {
			return nil, nil, err
		}
		e, err := sqllock.New(pool, d, sqllock.Config{})
		return e, func() {
			_ = e.Close(context.Background())
			_ = pool.Close()
		}, err
	})
	teststack.Quiet()
	goleak.VerifyTestMain(m)
}

const ttl = 20 * time.Second

var (
	mine   = lockengine.Request{Key: "k", Owner: "me:1"}
	theirs = lockengine.Request{Key: "k", Owner: "they:1"}
)

// connect opens a pool on a DSN, as a program should.
func connect(dsn string) (*sql.DB, sqllock.Dialect, error) {
	driver, d := "mysql", sqllock.MySQL
	switch {
	case strings.HasPrefix(dsn, "file:") && strings.Contains(dsn, "_busy_timeout"):
		driver, d = "sqlite3", sqllock.SQLite
	case strings.HasPrefix(dsn, "file:"):
		driver, d = "sqlite", sqllock.SQLite
	case testdb.IsPostgres(dsn):
		driver, d = "pgx", sqllock.Postgres
	case !strings.Contains(dsn, "interpolateParams"):
		dsn += "&interpolateParams=true"
	}
	pool, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, d, err
	}
	pool.SetMaxOpenConns(4)
	pool.SetMaxIdleConns(4)
	return pool, d, nil
}

func openPool(tb testing.TB, dsn string) (*sql.DB, sqllock.Dialect) {
	tb.Helper()
	pool, d, err := connect(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = pool.Close() })
	return pool, d
}

// open returns an engine on a pool of its own.
func open(tb testing.TB, dsn string, cfg ...sqllock.Config) sqllock.Engine {
	tb.Helper()
	pool, d := openPool(tb, dsn)
	return openOn(tb, pool, d, cfg...)
}

func openOn(tb testing.TB, pool *sql.DB, d sqllock.Dialect, cfg ...sqllock.Config) sqllock.Engine {
	tb.Helper()
	e, err := sqllock.New(pool, d, append(cfg, sqllock.Config{})[0])
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

// databases returns where locks can be kept, by the kind of server and driver.
var databases = map[string]func(testing.TB) string{
	"mysql": teststack.MySQL, "mysql9": mysql9, "postgres": teststack.Postgres, "sqlite": file,
}

// each runs f on a database of each kind, which has the tables and no rows.
func each(t *testing.T, f func(t *testing.T, dsn string)) {
	t.Helper()
	for name, dsn := range databases {
		t.Run(name, func(t *testing.T) {
			dsn := dsn(t)
			migrate(t, dsn)
			f(t, dsn)
		})
	}
}

// mysql9 is MySQL where it does not stand for MariaDB already.
func mysql9(tb testing.TB) string {
	tb.Helper()
	if os.Getenv("BELAY_MYSQL_DSN") == os.Getenv("BELAY_MYSQL9_DSN") {
		tb.Skip("it is the usual one")
	}
	return teststack.MySQL9(tb)
}

// wal are the settings of a file. Those of tests also wait for no disk, which a busy machine makes seconds.
const wal = "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"

func file(tb testing.TB) string {
	tb.Helper()
	return newFile(tb, wal+"&_pragma=synchronous(OFF)")
}

func durableFile(tb testing.TB) string {
	tb.Helper()
	return newFile(tb, wal)
}

// newFile returns the DSN of a file that is not there yet.
func newFile(tb testing.TB, settings string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "lock.db")
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + settings
}

func migrate(tb testing.TB, dsn string) {
	tb.Helper()
	pool, d := openPool(tb, dsn)
	for range 2 {
		if err := sqllock.Migrate(tb.Context(), pool, d); err != nil {
			tb.Fatal(err)
		}
	}
}
