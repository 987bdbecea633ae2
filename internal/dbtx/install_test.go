package dbtx_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
)

// TestSharedConfig: gorm initializes the plugins of a config in any order when a second
// db is opened with it.
func TestSharedConfig(t *testing.T) {
	config, dir := new(gorm.Config), t.TempDir()
	for i := range 20 {
		db := testdb.OpenSQLite(t, filepath.Join(dir, fmt.Sprint(i)), config)
		prepare(t, db)
		if i == 0 {
			behaves(t, db)
		}
	}
	behaves(t, testdb.OpenSQLite(t, filepath.Join(dir, "1"), config))
}

// TestInstallAtATime has several Belays of one program open on one gorm.DB.
func TestInstallAtATime(t *testing.T) {
	db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "db"))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := dbtx.Install(db); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	prepare(t, db)
	behaves(t, db)
}
