package guardtest

import (
	"database/sql"
	"net/url"
	"path/filepath"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
)

// pragmas let several connections work on a file, as github.com/mattn/go-sqlite3 and
// modernc.org/sqlite spell it; each ignores what is the other's.
const pragmas = "?_busy_timeout=10000&_journal_mode=WAL&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"

// Open returns a Guard on a new SQLite database, with tables for the models and those of
// packages once and relay. dialect is
// the function of a driver of the caller's choice that takes a DSN, such as sqlite.Open of
// gorm.io/driver/sqlite. The database is closed and deleted when the test ends.
func Open(tb testing.TB, dialect func(dsn string) gorm.Dialector, models ...any) *Guard {
	tb.Helper()
	db, err := gorm.Open(dialect(newFile(tb)), &gorm.Config{Logger: logger.Discard}) // what goes wrong is returned
	if err != nil {
		tb.Fatalf("open database: %v", err)
	}
	pool, err := db.DB()
	if err != nil {
		tb.Fatalf("open database: %v", err)
	}
	closeAtEnd(tb, pool)
	if err := db.AutoMigrate(models...); err != nil {
		tb.Fatalf("create tables: %v", err)
	}
	return New(tb, db)
}

// OpenSQL returns a Guard on a new SQLite database, for a program that writes SQL. driver is the
// name of a driver of database/sql, such as "sqlite3" of github.com/mattn/go-sqlite3 or "sqlite"
// of modernc.org/sqlite, and schema are statements that create tables. The tables of packages
// once and relay are there, too. The database is closed and deleted when the test ends.
func OpenSQL(tb testing.TB, driver string, schema ...string) *Guard {
	tb.Helper()
	pool, err := sql.Open(driver, newFile(tb))
	if err != nil {
		tb.Fatalf("open database: %v", err)
	}
	closeAtEnd(tb, pool)
	for _, statement := range schema {
		if _, err := pool.ExecContext(tb.Context(), statement); err != nil {
			tb.Fatalf("create tables: %v", err)
		}
	}
	db, err := dbguard.Open(tb.Context(), pool)
	if err != nil {
		tb.Fatalf("open database: %v", err)
	}
	return New(tb, db)
}

// newFile returns the DSN of a new database.
func newFile(tb testing.TB) string {
	tb.Helper()
	path := url.URL{Path: filepath.ToSlash(filepath.Join(tb.TempDir(), "test.db"))}
	return "file:" + path.EscapedPath() + pragmas
}

// closeAtEnd closes a database when the test ends.
func closeAtEnd(tb testing.TB, pool *sql.DB) {
	tb.Helper()
	tb.Cleanup(func() {
		if err := pool.Close(); err != nil {
			tb.Errorf("close database: %v", err)
		}
	})
}
