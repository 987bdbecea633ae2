package once_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/once"
)

// TestMigrateCalls: it may be done again. Without the table the error names what creates it.
func TestMigrateCalls(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		_, err := once.Open(bg, db, 1)
		for _, err := range []error{err, once.CheckCalls(bg, db)} {
			if err == nil || !strings.Contains(err.Error(), "once.MigrateCalls") {
				t.Errorf("without the table: %v", err)
			}
		}
		for range 2 {
			testdb.WantNil(t, once.MigrateCalls(bg, db))
		}
		testdb.WantNil(t, once.CheckCalls(bg, db))
		if open, err := once.Open(bg, db, 1); err != nil || len(open) != 0 {
			t.Errorf("open are %+v, %v", open, err)
		}
		if _, err := once.Open(bg, db, 0); err == nil {
			t.Error("no error for a limit of 0")
		}
		testdb.WantNil(t, db.Exec("ALTER TABLE belay_pending RENAME TO calls").Error)
		testdb.WantNil(t, db.Exec("CREATE TABLE belay_pending AS SELECT * FROM calls").Error) // without the key
		if err := once.CheckCalls(bg, db); err == nil || !strings.Contains(err.Error(), "no unique index on (request) alone") {
			t.Errorf("without the key: %v", err)
		}
	})
}
