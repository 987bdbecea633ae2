//go:build cgo

package wild

import (
	"path/filepath"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// TestSQLiteAsGormOpensIt: over github.com/mattn/go-sqlite3, which needs cgo.
func TestSQLiteAsGormOpensIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	e := newEnv(t, "sqlite", func(...gorm.Option) *gorm.DB {
		db, err := gorm.Open(sqlite.Open(path), &gorm.Config{Logger: logger.Discard})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if pool, err := db.DB(); err != nil || pool.Close() != nil {
				t.Errorf("close database: %v", err)
			}
		})
		return db
	})
	e.migrate(&Account{})
	e.wantOnce("a", insert(Account{Email: "a"}))
}
