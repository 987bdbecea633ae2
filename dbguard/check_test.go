package dbguard_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
)

type Coupon struct {
	ID   uint
	Code *string `gorm:"size:32;uniqueIndex"`
}

type Pallet struct {
	ID   uint
	Code string `gorm:"size:32;uniqueIndex;not null"`
}

type Crate struct {
	ID      uint
	Version dbguard.Version
}

type Note struct {
	ID   uint
	Text string
}

// TestCheck compares models with the tables that are really there.
func TestCheck(t *testing.T) {
	type Parcel struct {
		ID      uint
		Version dbguard.Version
	}
	type Letter struct {
		ID   uint
		Code string `gorm:"size:32;not null;uniqueIndex"`
	}
	type Absent struct{ ID uint }
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Coupon{}, &Pallet{}, &Crate{}, &Note{}))
		wantNil(t, db.Exec("CREATE TABLE parcels (id int PRIMARY KEY)").Error)
		wantNil(t, db.Exec("CREATE TABLE letters (id int PRIMARY KEY, code varchar(32) NOT NULL)").Error)
		wantNil(t, dbguard.Check(bg, db, &Stock{}, &Pallet{}, Crate{}))
		for _, tt := range []struct {
			model any
			want  string
		}{
			{&Coupon{}, "model Coupon, table coupons: the unique index on (code) does not keep rows apart that have NULL in code"},
			{&Note{}, "no unique index on columns that the program sets"},
			{&Parcel{}, "the version column version is missing"},
			{&Letter{}, "the unique index on (code) that the model declares is missing"},
			{&Absent{}, "the table does not exist"},
			{7, "unsupported data type"},
		} {
			err := dbguard.Check(bg, db, &Stock{}, tt.model)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%T: error is %v, want %q in it", tt.model, err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "Stock") {
				t.Errorf("%T: error is %v, and stocks are all right", tt.model, err)
			}
		}
		if err := dbguard.Check(bg, db, &Note{}, &Absent{}); err == nil || strings.Count(err.Error(), "\n") != 1 {
			t.Errorf("error is %v, want both faults", err)
		}

		wantNil(t, db.Migrator().DropTable(&Stock{}))
		wantNil(t, db.Exec("CREATE TABLE stocks (id int PRIMARY KEY, version bigint)").Error)
		if err := dbguard.Check(bg, db, &Stock{}); err == nil || !strings.Contains(err.Error(), "may be NULL") {
			t.Errorf("error is %v, want that the version may be NULL", err)
		}
	})
}
