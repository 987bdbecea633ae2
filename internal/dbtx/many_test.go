package dbtx_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
)

// TestManyProtectedRows: a protected row costs the same, however many others there
// are. Allocations stand for the cost, as they are the same in every run.
func TestManyProtectedRows(t *testing.T) {
	db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "a.db"))
	prepare(t, db)
	costs := func(name string, rows int) float64 {
		return testing.AllocsPerRun(1, func() {
			tx := begin(t, db, dbtx.Options{})
			for i := range rows {
				o := &Order{No: fmt.Sprint(name, i)}
				wantNil(t, tx.ProtectNew(o))
				wantNil(t, tx.DB().Create(o).Error)
			}
			if c := tx.Coverage(); !c.Covered {
				t.Errorf("coverage is %+v", c)
			}
			tx.Rollback()
		}) / float64(rows)
	}
	few, many := costs("few", 100), costs("many", 800)
	if many > few*1.5 {
		t.Errorf("a row among 800 costs %.0f allocations, one among 100 %.0f", many, few)
	}
}
