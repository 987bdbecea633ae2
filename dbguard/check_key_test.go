package dbguard_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
)

// TestCheckVersions: Check names a version column whose default is below 1, one that has
// rows below 1, and rows with NULL.
func TestCheckVersions(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		left := db.Statement.Quote("left")
		for _, tt := range []struct{ column, version, want string }{
			{"BIGINT NOT NULL DEFAULT 1", "1", ""},
			{"BIGINT NOT NULL", "1", ""},
			{"BIGINT NOT NULL DEFAULT 0", "1", "has DEFAULT 0"},
			{"BIGINT NOT NULL DEFAULT -1", "1", "has DEFAULT -1"},
			{"BIGINT NOT NULL DEFAULT 1", "0", "1 have no version of at least 1"},
			{"BIGINT NULL DEFAULT 1", "NULL", "1 have no version of at least 1"},
		} {
			wantNil(t, db.Migrator().DropTable(&Stock{}))
			wantNil(t, db.Exec("CREATE TABLE stocks (id BIGINT PRIMARY KEY, "+left+" BIGINT NOT NULL, version "+tt.column+")").Error)
			wantNil(t, db.Exec("INSERT INTO stocks (id, "+left+", version) VALUES (1, 5, "+tt.version+")").Error)
			err := dbguard.Check(bg, db, &Stock{})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%s with %s: Check returns %v, want %q in it", tt.column, tt.version, err, tt.want)
			}
		}
	})
}

// TestCheckStamps: a column that does not hold a stamp would prove the wrong outcome of a
// COMMIT.
func TestCheckStamps(t *testing.T) {
	type Shelf struct {
		ID      int64
		Version dbguard.Version
		Stamp   dbguard.Stamp
	}
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Shelf{}))
		wantNil(t, dbguard.Check(bg, db, &Shelf{}))
		if db.Name() == "sqlite" {
			return // each integer has 64 bits
		}
		wantNil(t, db.Migrator().DropTable(&Shelf{}))
		wantNil(t, db.Exec("CREATE TABLE shelves (id BIGINT PRIMARY KEY, version BIGINT NOT NULL, stamp INT NOT NULL)").Error)
		if err := dbguard.Check(bg, db, &Shelf{}); err == nil || !strings.Contains(err.Error(), "which holds no stamp of 64 bits") {
			t.Errorf("Check returns %v", err)
		}
	})
}
