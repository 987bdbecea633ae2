package dbtx_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/tablerow"
	"github.com/belaygo/belay/internal/testdb"
)

// wareRow names a ware by its table.
func wareRow() *tablerow.Row { return tablerow.New("wares", []any{"id", 1}) }

// TestStampOfARow: UpdateRow sets the stamp of a row that has one, which proves what a version
// does not.
func TestStampOfARow(t *testing.T) {
	t.Parallel()
	nothing := func(*gorm.DB) error { return nil }
	later := func(db *gorm.DB) error { return db.Model(&Ware{ID: 1}).Update("left", 1).Error }
	behind := func(db *gorm.DB) error {
		return db.Exec("UPDATE wares SET wares.left = 1, version = version + 1 WHERE id = 1").Error
	}
	for _, tt := range []struct {
		name   string
		row    *tablerow.Row
		times  int
		others func(*gorm.DB) error // after the COMMIT was lost
		before dbtx.Outcome         // if it did not arrive
		after  dbtx.Outcome         // if it did
	}{
		{"without a stamp", wareRow(), 1, nothing, dbtx.NotCommitted, dbtx.Unresolved},
		{"stamped", wareRow().Stamped("stamp"), 1, nothing, dbtx.NotCommitted, dbtx.Committed},
		{"stamped twice", wareRow().Stamped("stamp"), 2, nothing, dbtx.NotCommitted, dbtx.Committed},
		{"stamped, an UPDATE without one behind it", wareRow().Stamped("stamp"), 1, behind, dbtx.NotCommitted, dbtx.Committed},
		{"stamped, another behind it", wareRow().Stamped("stamp"), 1, later, dbtx.NotCommitted, dbtx.Unresolved},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachMySQLLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
				wantNil(t, direct.AutoMigrate(&Ware{}))
				for arrives, want := range map[bool]dbtx.Outcome{false: tt.before, true: tt.after} {
					wantNil(t, direct.Exec("DELETE FROM wares").Error)
					wantNil(t, direct.Create(&Ware{ID: 1, Left: 5}).Error)
					tx := begin(t, db, dbtx.Options{})
					wantNil(t, tx.Protect(wareRow()))
					for n := range tt.times {
						wantNil(t, tx.UpdateRow(bg, tt.row, dbguard.Version(n+1), "`left` = `left` - ?", []any{1}))
					}
					lose(t, tx, k, arrives)
					wantNil(t, tt.others(direct))
					if o, err := tx.Resolve(bg); o != want {
						t.Errorf("arrives %v: resolved as %v, %v, want %v", arrives, o, err, want)
					}
				}
			})
		})
	}
}

// TestStampOfARivalRow: another writes the same version with a stamp in place of this one.
func TestStampOfARivalRow(t *testing.T) {
	t.Parallel()
	eachMySQLLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
		wantNil(t, direct.AutoMigrate(&Ware{}))
		wantNil(t, direct.Create(&Ware{ID: 1, Left: 5}).Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(wareRow()))
		wantNil(t, tx.UpdateRow(bg, wareRow().Stamped("stamp"), 1, "`left` = 4", nil))
		lose(t, tx, k, false)
		wantNil(t, direct.Model(&Ware{ID: 1, Version: 1}).Update("left", 4).Error)
		if o, err := tx.Resolve(bg); o != dbtx.NotCommitted {
			t.Errorf("resolved as %v, %v, want not committed", o, err)
		}
	})
}

// TestStampOfARowIsRefused: a column that does not keep all of a stamp is an error.
func TestStampOfARowIsRefused(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Ware{}))
		wantNil(t, db.Exec("ALTER TABLE wares ADD COLUMN small SMALLINT NOT NULL DEFAULT 0").Error)
		wantNil(t, db.Exec("ALTER TABLE wares ADD COLUMN text VARCHAR(40) NOT NULL DEFAULT ''").Error)
		tx := begin(t, db, dbtx.Options{})
		columns := []string{"text", "nowhere", "a;b"}
		if db.Name() != "sqlite" { // every integer there has 64 bits
			columns = append(columns, "small")
		}
		for _, column := range columns {
			wantIs(t, tx.Protect(wareRow().Stamped(column)), conflict.ErrUnprotectable)
		}
		wantNil(t, tx.Protect(wareRow().Stamped("stamp")))
	})
}

// TestStampOfATrigger: where triggers may set a stamp, another one is no proof that the commit was
// not executed.
func TestStampOfATrigger(t *testing.T) {
	t.Parallel()
	eachMySQLLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
		wantNil(t, direct.AutoMigrate(&Ware{}))
		wantNil(t, direct.Exec("CREATE TRIGGER wares_stamp BEFORE UPDATE ON wares FOR EACH ROW SET NEW.stamp = UUID_SHORT() >> 1").Error)
		for arrives, want := range map[bool]dbtx.Outcome{false: dbtx.NotCommitted, true: dbtx.Unresolved} {
			wantNil(t, direct.Exec("DELETE FROM wares").Error)
			wantNil(t, direct.Create(&Ware{ID: 1, Left: 5}).Error)
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tx.Protect(wareRow()))
			wantNil(t, tx.UpdateRow(bg, wareRow().Stamped("stamp"), 1, "`left` = 4", nil))
			lose(t, tx, k, arrives)
			if o, err := tx.Resolve(bg); o != want {
				t.Errorf("arrives %v: resolved as %v, %v, want %v", arrives, o, err, want)
			}
		}
	})
}
