package dbtx_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
)

type Loaf struct {
	Code string `gorm:"primaryKey;size:16"`
}

type Slice struct {
	Loaf string `gorm:"primaryKey;size:16"`
	No   string `gorm:"primaryKey;size:16"`
}

// TestResolveBehindACascade: a row that the transaction has inserted, and then deleted or renamed
// with its parent, proves nothing by its absence.
func TestResolveBehindACascade(t *testing.T) {
	for name, tt := range map[string]struct {
		on     string
		change func(tx *gorm.DB) error
	}{
		"deleted":        {"DELETE", func(tx *gorm.DB) error { return tx.Delete(&Loaf{Code: "a"}).Error }},
		"deleted in SQL": {"DELETE", func(tx *gorm.DB) error { return tx.Exec("DELETE FROM loafs WHERE code = 'a'").Error }},
		"renamed":        {"UPDATE", func(tx *gorm.DB) error { return tx.Model(&Loaf{Code: "a"}).Update("code", "b").Error }},
		"renamed in SQL": {"UPDATE", func(tx *gorm.DB) error { return tx.Exec("UPDATE loafs SET code = 'b' WHERE code = 'a'").Error }},
	} {
		t.Run(name, func(t *testing.T) {
			eachLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
				wantNil(t, direct.AutoMigrate(&Loaf{}, &Slice{}))
				wantNil(t, direct.Exec("ALTER TABLE slices ADD FOREIGN KEY (loaf) REFERENCES loafs (code) ON "+tt.on+" CASCADE").Error)
				wantNil(t, direct.Create(&Loaf{Code: "a"}).Error)
				tx := begin(t, db, dbtx.Options{})
				row := &Slice{Loaf: "a", No: "1"}
				wantNil(t, tx.Protect(row))
				wantNil(t, tx.DB().Create(row).Error)
				wantNil(t, tt.change(tx.DB()))
				if o, err := resolve(t, tx, k, true); o == dbtx.NotCommitted {
					t.Errorf("resolved as %v, %v, though it was committed", o, err)
				}
			})
		})
	}
}

type Crumb struct {
	Loaf  string `gorm:"primaryKey;size:16"`
	No    string `gorm:"primaryKey;size:16"`
	Stamp dbguard.Stamp
}

// TestResolveBesideADelete: a row that is there with its stamp proves its commit, though SQL of the
// transaction has deleted others that rows like it may refer to.
func TestResolveBesideADelete(t *testing.T) {
	eachLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
		wantNil(t, direct.AutoMigrate(&Loaf{}, &Crumb{}))
		wantNil(t, direct.Exec("ALTER TABLE crumbs ADD FOREIGN KEY (loaf) REFERENCES loafs (code) ON DELETE CASCADE").Error)
		wantNil(t, direct.Create(&[]Loaf{{Code: "a"}, {Code: "b"}}).Error)
		tx := begin(t, db, dbtx.Options{})
		row := &Crumb{Loaf: "a", No: "1"}
		wantNil(t, tx.Protect(row))
		wantNil(t, tx.DB().Create(row).Error)
		wantNil(t, tx.DB().Exec("DELETE FROM loafs WHERE code = 'b'").Error)
		if o, err := resolve(t, tx, k, true); o != dbtx.Committed {
			t.Errorf("resolved as %v, %v, though it was committed", o, err)
		}
	})
}
