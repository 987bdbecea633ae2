// Package dsntest has databases for the tests of commands.
package dsntest

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/teststack"
)

// Each runs f as a subtest for a new database of each kind, at the same time. It calls f with the
// data source name of the database.
func Each(t *testing.T, f func(t *testing.T, dsn string)) {
	for name, dsn := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "postgres": teststack.Postgres, "sqlite": SQLite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, dsn(t))
		})
	}
}

// SQLite returns the data source name of a new file.
func SQLite(tb testing.TB) string {
	tb.Helper()
	return "file:" + filepath.Join(tb.TempDir(), "shop.db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"
}

// Open opens a database, as a service does.
func Open(tb testing.TB, dsn string) *gorm.DB {
	tb.Helper()
	driver := "mysql"
	switch {
	case strings.HasPrefix(dsn, "file:"):
		driver = "sqlite"
	case strings.HasPrefix(dsn, "postgres:"):
		driver = "pgx"
	}
	pool, err := sql.Open(driver, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = pool.Close() })
	db, err := dbguard.Open(tb.Context(), pool)
	if err != nil {
		tb.Fatal(err)
	}
	return db
}
