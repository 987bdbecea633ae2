//go:build ncruces

// Package ncruces_test is apart because this driver registers itself by the name of mattn's, and
// has a build tag because it takes minutes to compile.
package ncruces_test

import (
	"path/filepath"
	"testing"

	_ "github.com/ncruces/go-sqlite3/driver"
	"github.com/ncruces/go-sqlite3/gormlite"
	"gorm.io/gorm"

	"github.com/belaygo/belay/interop/drivers/internal/drive"
)

// TestVerdictsOfNcruces: a repeat is ErrDuplicate, and so on.
func TestVerdictsOfNcruces(t *testing.T) {
	path := filepath.ToSlash(filepath.Join(t.TempDir(), "test.db"))
	drive.Verdicts(t, func() *gorm.DB {
		return drive.Open(t, gormlite.Open("file:"+path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)"))
	})
}
