package dbguard_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
)

type Slot struct {
	ID   uint
	Day  time.Time  `gorm:"precision:6;uniqueIndex"`
	Hour *time.Time `gorm:"uniqueIndex"` // precision 3
}

// TestTimesInKeys: a time is looked for as the database has rounded it.
func TestTimesInKeys(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC)
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Slot{}))
		wantNil(t, db.Create(&Slot{Day: at, Hour: &at}).Error)
		for name, columns := range map[string]Slot{"microseconds": {Day: at}, "milliseconds": {Hour: &at}} {
			tx := begin(t, db, dbguard.Options{})
			wantNil(t, tx.Protect(&columns))
			wantIs(t, tx.DB().Create(&Slot{Day: at, Hour: &at}).Error, gorm.ErrDuplicatedKey)
			c := tx.Conflict()
			if tx.Rollback(); !repeat(c) {
				t.Errorf("%s: conflict is %+v with evidence %+v, want a repeat", name, c, evidence(c))
			}
		}
	})
}

// TestNullInKeys: rows with NULL in a unique index are not kept apart by it.
func TestNullInKeys(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Coupon{}))
		wantNil(t, db.Create(&Coupon{}).Error)
		tx := begin(t, db, dbguard.Options{})
		wantIs(t, tx.Protect(&Coupon{}), dbguard.ErrUnprotectable)
		wantIs(t, tx.ProtectNew(&Coupon{}), dbguard.ErrUnprotectable)
		wantNil(t, tx.DB().Create(&Coupon{}).Error)
		if c := tx.Coverage(); c.Covered || !c.Wrote {
			t.Errorf("coverage is %+v, want none", c)
		}
	})
}

type Member struct {
	ID        uint
	Name      string `gorm:"size:32;uniqueIndex"`
	DeletedAt gorm.DeletedAt
	Version   dbguard.Version
}

type EarlyMember struct {
	ID        uint
	Version   dbguard.Version
	Name      string `gorm:"size:32;uniqueIndex"`
	DeletedAt gorm.DeletedAt
}

// TestSoftDeletedRowIsInTheWay: nobody sees it, and the index has it.
func TestSoftDeletedRowIsInTheWay(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Member{}))
		m := Member{Name: "k"}
		wantNil(t, db.Create(&m).Error)
		wantNil(t, db.Delete(&m).Error)
		tx := begin(t, db, dbguard.Options{})
		wantNil(t, tx.Protect(&Member{Name: "k"}))
		wantIs(t, tx.DB().Create(&Member{Name: "k"}).Error, gorm.ErrDuplicatedKey)
		if c := tx.Conflict(); !repeat(c) {
			t.Errorf("conflict is %+v with evidence %+v, want a repeat", c, evidence(c))
		}
	})
}

// TestVersionedDeletes: wherever in the model the version stands, a delete
// compares it, and a soft one counts.
func TestVersionedDeletes(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Member{}, &EarlyMember{}))
		members := []Member{{Name: "a"}, {Name: "b"}, {Name: "c"}}
		wantNil(t, db.Create(&members).Error)
		old := members[0]
		wantNil(t, db.Delete(&members[0]).Error)
		if members[0].Version != 2 || !members[0].DeletedAt.Valid {
			t.Errorf("in memory %+v, want it deleted at version 2", members[0])
		}
		wantStale(t, db.Delete(&old).Error)
		wantStale(t, db.Unscoped().Delete(&old).Error)
		var got Member
		wantNil(t, db.Unscoped().Take(&got, old.ID).Error)
		if got.Version != 2 || !got.DeletedAt.Valid {
			t.Errorf("row is %+v, want it deleted at version 2", got)
		}
		wantNil(t, db.Where("name = ?", "b").Delete(&Member{}).Error) // no version loaded
		got = Member{}
		wantNil(t, db.Unscoped().Take(&got, "name = ?", "b").Error)
		if got.Version != 2 {
			t.Errorf("row is %+v, want version 2", got)
		}
		wantStale(t, db.Delete(&members).Error) // the first two are gone
		wantNil(t, db.Unscoped().Delete(&Member{ID: old.ID, Version: 2}).Error)
		got = Member{}
		wantNil(t, db.Take(&got, members[2].ID).Error)

		early := EarlyMember{Name: "a"}
		wantNil(t, db.Create(&early).Error)
		stale := early
		wantNil(t, db.Model(&early).Update("name", "b").Error)
		wantStale(t, db.Delete(&stale).Error)
		tx := begin(t, db, dbguard.Options{})
		wantNil(t, tx.DB().Delete(&early).Error)
		if early.Version != 3 {
			t.Errorf("version in memory is %d, want 3", early.Version)
		}
		tx.Rollback()
		if early.Version != 2 {
			t.Errorf("version in memory after a rollback is %d, want 2", early.Version)
		}
		wantNil(t, db.Delete(&early).Error)
		var n int64
		wantNil(t, db.Unscoped().Model(&EarlyMember{}).Where("version = 3 AND deleted_at IS NOT NULL").Count(&n).Error)
		if n != 1 {
			t.Error("the soft delete has not counted")
		}
	})
}
