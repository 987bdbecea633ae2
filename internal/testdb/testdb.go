// Package testdb opens databases for tests. Only tests import it.
package testdb

import (
	"database/sql"
	"path/filepath"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite" // the driver named sqlite

	"github.com/belaygo/belay/internal/teststack"
)

// Each runs f as a subtest on an empty MariaDB or MySQL database and on an empty
// SQLite file. open returns another pool on the same database at each call.
func Each(t *testing.T, f func(t *testing.T, open func(opts ...gorm.Option) *gorm.DB)) {
	t.Run("mysql", func(t *testing.T) {
		dsn := teststack.MySQL(t)
		f(t, func(opts ...gorm.Option) *gorm.DB { return OpenMySQL(t, dsn, opts...) })
	})
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "test.db")
		f(t, func(opts ...gorm.Option) *gorm.DB { return OpenSQLite(t, path, opts...) })
	})
}

// OpenMySQL opens a pool that is closed when the test ends.
func OpenMySQL(tb testing.TB, dsn string, opts ...gorm.Option) *gorm.DB {
	tb.Helper()
	return open(tb, mysql.Open(dsn), opts)
}

// OpenSQLite opens a pool on a file; it is closed when the test ends.
func OpenSQLite(tb testing.TB, path string, opts ...gorm.Option) *gorm.DB {
	tb.Helper()
	pool, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
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
