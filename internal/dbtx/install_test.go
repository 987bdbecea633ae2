package dbtx_test

import (
	"path/filepath"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/internal/dbtx"
)

// TestConfigOfAnotherDB: gorm initializes the plugins of a Config that has served for
// another db in the order of a map.
func TestConfigOfAnotherDB(t *testing.T) {
	config := &gorm.Config{Logger: logger.Discard}
	for range 20 {
		db, err := gorm.Open(sqlite.New(sqlite.Config{DriverName: "sqlite", DSN: filepath.Join(t.TempDir(), "a.db")}), config)
		if err != nil {
			t.Fatal(err)
		}
		if err := dbtx.Install(db); err != nil {
			t.Fatal(err)
		}
		pool, err := db.DB()
		if err != nil {
			t.Fatal(err)
		}
		if err := pool.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
