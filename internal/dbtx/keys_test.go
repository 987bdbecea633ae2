package dbtx_test

import (
	"database/sql"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/tablerow"
	"github.com/belaygo/belay/internal/testdb"
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
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tx.Protect(&columns))
			wantIs(t, tx.DB().Create(&Slot{Day: at, Hour: &at}).Error, gorm.ErrDuplicatedKey)
			c := refused(tx)
			if tx.Rollback(); !repeat(c) {
				t.Errorf("%s: conflict is %+v with evidence %+v, want a repeat", name, c, evidence(c))
			}
		}
	})
}

type Booking struct {
	ID   uint
	Day  time.Time `gorm:"type:date;uniqueIndex:one"`
	Room int       `gorm:"uniqueIndex:one"`
	Note string    `gorm:"size:16"`
}

// TestDatesInKeys: of a time that is put into a DATE, the server keeps the day.
func TestDatesInKeys(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Booking{}))
		for i, at := range []time.Time{
			time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
			time.Date(2026, 1, 2, 13, 4, 5, 123456789, time.UTC),
			time.Date(2026, 1, 2, 23, 59, 59, 600000000, time.UTC),
			time.Date(2026, 1, 2, 23, 30, 0, 0, time.FixedZone("west", -3600)), // another day in UTC
		} {
			room := i + 1
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tx.ProtectNew(&Booking{Day: at, Room: room}))
			wantNil(t, tx.DB().Create(&Booking{Day: at, Room: room}).Error)
			if c := tx.Coverage(); !c.Covered {
				t.Errorf("%v: coverage is %+v", at, c)
			}
			wantNil(t, tx.Commit())

			tx = begin(t, db, dbtx.Options{})
			wantNil(t, tx.Protect(&Booking{Day: at, Room: room}))
			wantIs(t, tx.DB().Create(&Booking{Day: at, Room: room}).Error, gorm.ErrDuplicatedKey)
			c := refused(tx)
			if tx.Rollback(); !repeat(c) {
				t.Errorf("%v: conflict is %+v with evidence %+v, want a repeat", at, c, evidence(c))
			}
		}
	})
}

type Voucher struct {
	ID   uint
	Code *string `gorm:"size:32;uniqueIndex"`
}

// BeforeCreate takes the code away from some.
func (v *Voucher) BeforeCreate(*gorm.DB) error {
	if v.Code != nil && *v.Code == "none" {
		v.Code = nil
	}
	return nil
}

type Place struct {
	ID   uint
	Seat sql.NullString `gorm:"size:32;uniqueIndex"`
}

// TestKeyMadeNull: a row with NULL in its key is kept apart from no other, so it
// can't be protected, whatever it was called before.
func TestKeyMadeNull(t *testing.T) {
	code := func(s string) *string { return &s }
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Voucher{}, &Place{}))
		for range 2 {
			tx := begin(t, db, dbtx.Options{})
			v := &Voucher{Code: code("none")}
			wantNil(t, tx.ProtectNew(v))
			wantIs(t, tx.DB().Create(v).Error, dbguard.ErrUnprotectable)
			wantIs(t, tx.ProtectNew(v), dbguard.ErrUnprotectable)
			wantIs(t, tx.ProtectNew(&Place{Seat: sql.NullString{String: "a"}}), dbguard.ErrUnprotectable)
			wantIs(t, tx.Protect(&Place{Seat: sql.NullString{String: "a"}}), dbguard.ErrUnprotectable)
			if c := tx.Coverage(); c.Covered {
				t.Errorf("coverage is %+v, want none", c)
			}
			v = &Voucher{Code: code("some")}
			wantNil(t, tx.ProtectNew(v))
			wantNil(t, tx.DB().Create(v).Error)
			tx.Rollback()
		}
	})
}

// TestNullInKeys: rows with NULL in a unique index are not kept apart by it.
func TestNullInKeys(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Coupon{}))
		wantNil(t, db.Create(&Coupon{}).Error)
		tx := begin(t, db, dbtx.Options{})
		wantIs(t, tx.Protect(&Coupon{}), dbguard.ErrUnprotectable)
		wantIs(t, tx.ProtectNew(&Coupon{}), dbguard.ErrUnprotectable)
		wantNil(t, tx.DB().Create(&Coupon{}).Error)
		if c := tx.Coverage(); c.Covered || !c.Wrote {
			t.Errorf("coverage is %+v, want none", c)
		}
	})
}

// TestEmptyIsNull: a row can't be protected by an empty text that a sql_mode of MariaDB makes NULL.
func TestEmptyIsNull(t *testing.T) {
	for mode, isNull := range map[string]bool{"STRICT_TRANS_TABLES": false, "STRICT_TRANS_TABLES,EMPTY_STRING_IS_NULL": true} {
		db := testdb.OpenMySQL(t, mariadb(t)+"&sql_mode=%27"+mode+"%27")
		prepare(t, db)
		wantNil(t, db.Exec("CREATE TABLE slips (shop VARCHAR(20), no VARBINARY(20), UNIQUE KEY slip (shop, no))").Error)
		for _, tt := range []struct {
			shop   string
			no     []byte
			isNull bool
		}{{"", []byte("7"), isNull}, {"a", []byte{}, isNull}, {"a", []byte("7"), false}} {
			tx := begin(t, db, dbtx.Options{})
			err := tx.Protect(tablerow.New("slips", []any{"shop", tt.shop, "no", tt.no}))
			if tt.isNull {
				wantIs(t, err, dbguard.ErrUnprotectable)
			} else {
				wantNil(t, err)
			}
			tx.Rollback()
		}
	}
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
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Member{Name: "k"}))
		wantIs(t, tx.DB().Create(&Member{Name: "k"}).Error, gorm.ErrDuplicatedKey)
		if c := refused(tx); !repeat(c) {
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
		tx := begin(t, db, dbtx.Options{})
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

// TestHookAltersTheKey: the row is the one that is inserted.
func TestHookAltersTheKey(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Trimmed{}))
		wantNil(t, db.Create(&Trimmed{No: "a"}).Error)
		tx := begin(t, db, dbtx.Options{})
		m := &Trimmed{No: " a "}
		wantNil(t, tx.ProtectNew(m))
		wantIs(t, tx.DB().Create(m).Error, gorm.ErrDuplicatedKey)
		if c := refused(tx); c == nil || !c.Evidence.Found {
			t.Errorf("conflict is %+v, want a judged one", c)
		}
	})
}
