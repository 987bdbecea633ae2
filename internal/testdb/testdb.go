// Package testdb opens databases for tests. Only tests import it.
package testdb

import (
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite" // the driver named sqlite

	"github.com/belaygo/belay/internal/teststack"
)

// Each runs f as a subtest on an empty database of each kind: on MariaDB or
// what stands for it, on MySQL 9 and MariaDB 11 where these are up, and on a
// SQLite file. open returns another pool on the same database at each call.
func Each(t *testing.T, f func(t *testing.T, open func(opts ...gorm.Option) *gorm.DB)) {
	t.Helper()
	eachMySQL(t, func(t *testing.T, dsn string) {
		f(t, func(opts ...gorm.Option) *gorm.DB { return OpenMySQL(t, dsn, opts...) })
	})
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "test.db")
		f(t, func(opts ...gorm.Option) *gorm.DB { return OpenSQLite(t, path, opts...) })
	})
}

// EachWithPostgres is [Each], and on PostgreSQL where that is up.
func EachWithPostgres(t *testing.T, f func(t *testing.T, open func(opts ...gorm.Option) *gorm.DB)) {
	t.Helper()
	Each(t, f)
	t.Run("postgres", func(t *testing.T) {
		dsn := teststack.Postgres(t)
		f(t, func(opts ...gorm.Option) *gorm.DB { return OpenPostgres(t, dsn, opts...) })
	})
}

// eachMySQL runs f on an empty database of every server of MySQL's kind. When
// MySQL 9 already stands for MySQL, it does not run there again.
func eachMySQL(t *testing.T, f func(t *testing.T, dsn string)) {
	t.Helper()
	usual := os.Getenv("BELAY_MYSQL_DSN")
	t.Run("mysql", func(t *testing.T) { f(t, teststack.MySQL(t)) })
	if usual != os.Getenv("BELAY_MYSQL9_DSN") {
		t.Run("mysql9", func(t *testing.T) { f(t, teststack.MySQL9(t)) })
	}
	if usual != os.Getenv("BELAY_MARIADB11_DSN") {
		t.Run("mariadb11", func(t *testing.T) { f(t, teststack.MariaDB11(t)) })
	}
}

// SnapshotIsolation reports whether db is a MariaDB that refuses to write a row
// which has changed since the snapshot, with error 1020.
func SnapshotIsolation(tb testing.TB, db *gorm.DB) bool {
	tb.Helper()
	if db.Name() != "mysql" {
		return false
	}
	var setting struct{ VariableName, Value string } // no row where there is no such variable
	if err := db.Raw("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'").Scan(&setting).Error; err != nil {
		tb.Fatal(err)
	}
	return setting.Value == "ON"
}

// OpenMySQL opens a pool that is closed when the test ends.
func OpenMySQL(tb testing.TB, dsn string, opts ...gorm.Option) *gorm.DB {
	tb.Helper()
	return open(tb, mysql.Open(dsn), opts)
}

// OpenMySQLConfig is OpenMySQL with what no DSN can say.
func OpenMySQLConfig(tb testing.TB, config *driver.Config) *gorm.DB {
	tb.Helper()
	connector, err := driver.NewConnector(config)
	if err != nil {
		tb.Fatal(err)
	}
	return open(tb, mysql.New(mysql.Config{Conn: sql.OpenDB(connector)}), nil)
}

// OpenPostgres opens a pool that is closed when the test ends.
func OpenPostgres(tb testing.TB, dsn string, opts ...gorm.Option) *gorm.DB {
	tb.Helper()
	return open(tb, postgres.Open(dsn), opts)
}

// OpenSQLite opens a pool on a file; it is closed when the test ends.
func OpenSQLite(tb testing.TB, path string, opts ...gorm.Option) *gorm.DB {
	tb.Helper()
	pool, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	if err != nil {
		tb.Fatal(err)
	}
	return open(tb, sqlite.New(sqlite.Config{Conn: pool}), opts)
}

func open(tb testing.TB, d gorm.Dialector, opts []gorm.Option) *gorm.DB {
	tb.Helper()
	db, err := gorm.Open(d, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	db.Logger = logger.Discard
	tb.Cleanup(func() {
		pool, err := db.DB()
		if err == nil {
			err = pool.Close()
		}
		if err != nil {
			tb.Errorf("close database: %v", err)
		}
	})
	return db
}
