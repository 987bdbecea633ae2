package guardtest

import (
	"net/url"
	"path/filepath"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// pragmas let several connections work on a file, as github.com/mattn/go-sqlite3 and
// modernc.org/sqlite spell it; each ignores what is the other's.
const pragmas = "?_busy_timeout=10000&_journal_mode=WAL&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"

// Open returns a Guard on a new SQLite database, with tables for the models and those of package
// once. dialect is
// the function of a driver of the caller's choice that takes a DSN, such as sqlite.Open of
// gorm.io/driver/sqlite. The database is closed and deleted when the test ends.
func Open(tb testing.TB, dialect func(dsn string) gorm.Dialector, models ...any) *Guard {
	tb.Helper()
	path := url.URL{Path: filepath.ToSlash(filepath.Join(tb.TempDir(), "test.db"))}
	db, err := gorm.Open(dialect("file:"+path.EscapedPath()+pragmas), &gorm.Config{Logger: logger.Discard}) // what goes wrong is returned
	if err != nil {
		tb.Fatalf("open database: %v", err)
	}
	pool, err := db.DB()
	if err != nil {
		tb.Fatalf("open database: %v", err)
	}
	tb.Cleanup(func() {
		if err := pool.Close(); err != nil {
			tb.Errorf("close database: %v", err)
		}
	})
	if err := db.AutoMigrate(models...); err != nil {
		tb.Fatalf("create tables: %v", err)
	}
	return New(tb, db)
}
