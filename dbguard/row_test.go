package dbguard_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
)

func TestProtect(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		serial := 1
		tx := begin(t, db, dbguard.Options{})
		for _, ok := range []any{&Order{No: "a"}, Order{No: "a"}, &Order{ID: 7}, &Order{Shop: "s", Serial: &serial}, &Stock{ID: 1, Version: 3}} {
			wantNil(t, tx.Protect(ok))
		}
		for _, bad := range []any{&Order{}, &Order{Shop: "s"}, &Order{No: "a", Shop: "s"}, &Stock{Left: 1}, 7, nil, (*Order)(nil), "orders", []Order{{No: "a"}}} {
			wantIs(t, tx.Protect(bad), dbguard.ErrUnprotectable)
		}
		wantNil(t, tx.ProtectPrimary(&Stock{ID: 1, Left: 2}))
		wantIs(t, tx.ProtectPrimary(&Stock{Left: 2}), dbguard.ErrUnprotectable)
	})
}

func TestProtectNew(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		serial := 1
		for _, tt := range []struct {
			row  *Order
			want string // in the error; empty = none
		}{
			{&Order{No: "a", ID: 3}, ""},
			{&Order{Shop: "s", Serial: &serial}, ""},
			{&Order{No: "a", Shop: "s"}, ""},
			{&Order{No: "a", Shop: "s", Serial: &serial}, " or "},
			{&Order{Shop: "s"}, "no unique index"},
		} {
			tx := begin(t, db, dbguard.Options{})
			err := tx.ProtectNew(tt.row)
			if tt.want == "" {
				wantNil(t, err)
			} else if !errors.Is(err, dbguard.ErrUnprotectable) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v: error is %v, want %q", tt.row, err, tt.want)
			}
			tx.Rollback()
		}
		tx := begin(t, db, dbguard.Options{})
		wantNil(t, tx.Protect(&Order{No: "b"}))
		wantNil(t, tx.ProtectNew(&Order{No: "a", Shop: "s", Serial: &serial}))
	})
}

// TestConflictEvidence looks at what the two reads say.
func TestConflictEvidence(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Order{No: "old"}).Error)
		tx := begin(t, db, dbguard.Options{})
		wantNil(t, tx.Protect(&Order{No: "old"}))
		wantNil(t, tx.Protect(&Order{No: "other"}))
		wantIs(t, tx.DB().Create(&Order{No: "old"}).Error, gorm.ErrDuplicatedKey)
		c := tx.Conflict()
		if c == nil || c.Evidence != (dbguard.Evidence{Protected: true, Found: true}) || c.Columns[0] != "no" {
			t.Fatalf("conflict is %+v", c)
		}
		if tx.Poisoned() != nil {
			t.Error("a repeat poisons the transaction")
		}
		if db.Name() == "sqlite" {
			return // nobody else can write now
		}
		wantNil(t, db.Create(&Order{No: "other"}).Error) // behind "old": the gap before it is locked
		wantIs(t, tx.DB().Create(&[]Order{{No: "x"}, {No: "other"}}).Error, gorm.ErrDuplicatedKey)
		c = tx.Conflict()
		if c == nil || c.Evidence != (dbguard.Evidence{Protected: true, Found: true, Differ: true}) {
			t.Fatalf("conflict is %+v, want the weightier one", c)
		}
		wantIs(t, tx.DB().Create(&Order{No: "y"}).Error, dbguard.ErrPoisoned)
	})
}

// TestConflictNamesNoValues: the text of an error ends up in logs.
func TestConflictNamesNoValues(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Order{No: "secret"}).Error)
		tx := begin(t, db, dbguard.Options{})
		wantNil(t, tx.Protect(&Order{No: "secret"}))
		err := tx.DB().Create(&Order{No: "secret"}).Error
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("error is %v", err)
		}
	})
}

// TestLockedRowCountsAsNewer: somebody is writing the row at this moment.
func TestLockedRowCountsAsNewer(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		if db.Name() == "sqlite" {
			return // nobody else can write now
		}
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		wantNil(t, db.Model(&Stock{ID: 1}).Update("left", 4).Error)
		tx := begin(t, db, dbguard.Options{})
		wantNil(t, tx.ProtectPrimary(&Stock{ID: 1}))
		writer := db.Begin()
		defer writer.Rollback()
		wantNil(t, writer.Model(&Stock{ID: 1}).Update("left", 3).Error)

		// An impossible condition: the update itself does not wait for the row.
		err := tx.DB().Model(&Stock{ID: 1, Version: 2}).Where("1 = 0").Update("left", 0).Error
		var c *dbguard.Conflict
		if !errors.As(err, &c) || !c.Evidence.Differ {
			t.Fatalf("error is %v with evidence %+v, want reads that differ", err, c)
		}
	})
}
