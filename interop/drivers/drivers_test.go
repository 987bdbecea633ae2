// Package drivers_test shows that Belay reads the errors of the drivers that services use, alone
// and wrapped.
package drivers_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/XSAM/otelsql"
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	_ "github.com/mattn/go-sqlite3"
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	_ "modernc.org/sqlite"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/interop/drivers/internal/drive"
)

// TestVerdictsOfEachDriver: a repeat is ErrDuplicate, and so on.
func TestVerdictsOfEachDriver(t *testing.T) {
	plain := func(driver string) func(string) (*sql.DB, error) {
		return func(dsn string) (*sql.DB, error) { return sql.Open(driver, dsn) }
	}
	traced := func(driver string) func(string) (*sql.DB, error) {
		return func(dsn string) (*sql.DB, error) { return otelsql.Open(driver, dsn) }
	}
	onMySQL := func(pool gorm.ConnPool) gorm.Dialector { return mysql.New(mysql.Config{Conn: pool}) }
	onPostgres := func(pool gorm.ConnPool) gorm.Dialector { return postgres.New(postgres.Config{Conn: pool}) }
	onSQLite := func(pool gorm.ConnPool) gorm.Dialector { return sqlite.New(sqlite.Config{Conn: pool}) }
	file := func(t testing.TB) string {
		t.Helper()
		return "file:" + filepath.ToSlash(filepath.Join(t.TempDir(), "test.db"))
	}
	mattn := func(t testing.TB) string {
		t.Helper()
		return file(t) + "?_busy_timeout=10000&_journal_mode=WAL"
	}
	modernc := func(t testing.TB) string {
		t.Helper()
		return file(t) + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"
	}
	for name, d := range map[string]struct {
		dsn     func(testing.TB) string
		open    func(string) (*sql.DB, error)
		dialect func(gorm.ConnPool) gorm.Dialector
	}{
		"go-sql-driver":         {teststack.MySQL, plain("mysql"), onMySQL},
		"go-sql-driver otelsql": {teststack.MySQL, traced("mysql"), onMySQL},
		"pgx":                   {teststack.Postgres, plain("pgx"), onPostgres},
		"pgx otelsql":           {teststack.Postgres, traced("pgx"), onPostgres},
		"lib/pq":                {teststack.Postgres, plain("postgres"), onPostgres},
		"mattn":                 {mattn, plain("sqlite3"), onSQLite},
		"mattn otelsql":         {mattn, traced("sqlite3"), onSQLite},
		"modernc":               {modernc, plain("sqlite"), onSQLite},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := d.dsn(t)
			open := func() *gorm.DB {
				pool, err := d.open(dsn)
				if err != nil {
					t.Fatal(err)
				}
				return drive.Open(t, d.dialect(pool))
			}
			drive.Verdicts(t, open)
			if open().Name() != "sqlite" {
				drive.Overlap(t, open)
			}
		})
	}
}
