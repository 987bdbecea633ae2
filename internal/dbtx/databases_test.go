package dbtx

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
)

type seat struct {
	ID   uint
	Code string
	Hall string
}

// openSeats opens an SQLite database in which a column of seats is unique.
func openSeats(t *testing.T, config *gorm.Config, unique string) *gorm.DB {
	t.Helper()
	db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "db"), config)
	for _, err := range []error{
		Install(db),
		db.AutoMigrate(&seat{}),
		db.Exec("CREATE UNIQUE INDEX seat_name ON seats (" + unique + ")").Error,
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// protectIn protects a row in a transaction on db that is rolled back.
func protectIn(db *gorm.DB, o Options, model any) error {
	tx, err := Begin(context.Background(), db, o)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return tx.Protect(model)
}

// TestEachDatabaseHasItsOwnIndexes: gorm keeps plugins in its Config, so two databases
// that are opened with one have one plugin.
func TestEachDatabaseHasItsOwnIndexes(t *testing.T) {
	t.Parallel()
	config := new(gorm.Config)
	first, second := openSeats(t, config, "code"), openSeats(t, config, "hall")
	var wg sync.WaitGroup
	for range 2 {
		for _, tt := range []struct {
			db     *gorm.DB
			unique bool // the index is on code
		}{{first, true}, {second, false}} {
			wg.Go(func() {
				if err := protectIn(tt.db, Options{}, &seat{Code: "A1"}); (err == nil) != tt.unique {
					t.Errorf("protect by code: error is %v, unique is %t", err, tt.unique)
				}
				if err := protectIn(tt.db, Options{}, &seat{Hall: "red"}); (err == nil) == tt.unique {
					t.Errorf("protect by hall: error is %v, unique is %t", err, !tt.unique)
				}
			})
		}
		wg.Wait()
	}
}

// TestRowsOfTwoDatabasesMayHaveTwoKeys: rows of equal names in two databases are two rows.
func TestRowsOfTwoDatabasesMayHaveTwoKeys(t *testing.T) {
	t.Parallel()
	config := new(gorm.Config)
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	for _, key := range []string{"a", "b"} {
		db := openSeats(t, config, "code")
		if err := protectIn(db, Options{Key: key, Logger: logger}, &seat{Code: "A1"}); err != nil {
			t.Fatal(err)
		}
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log.String())
	}
}

// TestDatabasesAreForgottenWithTheirPools: a Config may outlive many databases.
func TestDatabasesAreForgottenWithTheirPools(t *testing.T) {
	t.Parallel()
	var d databases
	for range 10 {
		pool := sql.OpenDB(nil)
		if first := d.of(pool); d.of(pool) != first {
			t.Fatal("a database is not remembered")
		}
		_ = pool.Close()
	}
	testwait.Until(t, "databases are forgotten", func() bool {
		runtime.GC()
		left := 0
		d.known.Range(func(any, any) bool { left++; return true })
		return left == 0
	})
}
