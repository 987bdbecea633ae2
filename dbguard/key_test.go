package dbguard_test

import (
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
)

type Ticket struct {
	_      struct{} `dbguard:"key=show:{Show}:seat:{Seat}"`
	ID     uint
	Show   string `gorm:"size:32;uniqueIndex:place"`
	Seat   int    `gorm:"uniqueIndex:place"`
	Mail   string `gorm:"size:64;uniqueIndex"`
	Holder string
}

type Account struct {
	ID      int64 `dbguard:"key=account:{ID}"`
	Sum     int
	Version dbguard.Version
}

// TestKeyProtectsTaggedRows: nobody has to name them.
func TestKeyProtectsTaggedRows(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Ticket{}, &Account{}))
		wantNil(t, db.Create(&Ticket{Show: "x", Seat: 7, Mail: "a"}).Error)
		wantNil(t, db.Create(&Account{ID: 1}).Error)
		wantNil(t, db.Model(&Account{ID: 1}).Update("sum", 1).Error)
		for _, tt := range []struct {
			name, key string
			write     func(tx *gorm.DB) error
			want      bool // judged
		}{
			{"insert", "show:x:seat:7", func(tx *gorm.DB) error { return tx.Create(&Ticket{Show: "x", Seat: 7, Mail: "b"}).Error }, true},
			{"insert in a batch", "show:x:seat:7", func(tx *gorm.DB) error {
				return tx.Create(&[]Ticket{{Show: "x", Seat: 8, Mail: "b"}, {Show: "x", Seat: 7, Mail: "c"}}).Error
			}, true},
			{"insert of a map", "show:x:seat:7", func(tx *gorm.DB) error {
				return tx.Model(&Ticket{}).Create(map[string]any{"show": "x", "Seat": 7, "mail": "b"}).Error
			}, true},
			{"insert under another key", "show:x:seat:8", func(tx *gorm.DB) error { return tx.Create(&Ticket{Show: "x", Seat: 7, Mail: "b"}).Error }, false},
			{"another index", "show:x:seat:9", func(tx *gorm.DB) error { return tx.Create(&Ticket{Show: "x", Seat: 9, Mail: "a"}).Error }, false},
			{"update", "account:1", func(tx *gorm.DB) error { return tx.Model(&Account{ID: 1, Version: 1}).Update("sum", 2).Error }, true},
			{"update under another key", "account:2", func(tx *gorm.DB) error { return tx.Model(&Account{ID: 1, Version: 1}).Update("sum", 2).Error }, false},
			{"delete", "account:1", func(tx *gorm.DB) error { return tx.Delete(&Account{ID: 1, Version: 1}).Error }, true},
		} {
			tx := begin(t, db, dbguard.Options{Key: tt.key})
			if err := tt.write(tx.DB()); err == nil {
				t.Errorf("%s: no error", tt.name)
			}
			c := refused(tx)
			if judged := c != nil && c.Evidence.Found; judged != tt.want {
				t.Errorf("%s: conflict is %+v, judged must be %v", tt.name, c, tt.want)
			}
			tx.Rollback()
		}
	})
}

// TestCoverageByTag: which rows of a table belong to the key is known of those that
// gorm wrote, and of no others.
func TestCoverageByTag(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Ticket{}))
		for _, tt := range []struct {
			name, sql string
			want      bool // covered
		}{
			{"nothing else", "SELECT 1", true},
			{"another table", "UPDATE stocks SET version = 2", true},
			{"the same table", "UPDATE tickets SET holder = 'h' WHERE id = 99", false},
		} {
			tx := begin(t, db, dbguard.Options{Key: "show:x:seat:7"})
			wantNil(t, tx.DB().Create(&Ticket{Show: "x", Seat: 7, Mail: "a"}).Error)
			wantNil(t, tx.DB().Exec(tt.sql).Error)
			if c := tx.Coverage(); c.Covered != tt.want {
				t.Errorf("%s: coverage is %+v, want covered %v", tt.name, c, tt.want)
			}
			tx.Rollback()
		}
	})
}

func TestBadTags(t *testing.T) {
	type Base struct {
		ID uint
		No string `gorm:"size:32;uniqueIndex"`
		At time.Time
	}
	type noKey struct {
		Base
		X int `dbguard:"order:{No}"`
	}
	type noField struct {
		Base
		X int `dbguard:"key=order"`
	}
	type unknown struct {
		Base
		X int `dbguard:"key=order:{Nr}"`
	}
	type open struct {
		Base
		X int `dbguard:"key=order:{No"`
	}
	type closed struct {
		Base
		X int `dbguard:"key=order:No}"`
	}
	type twice struct {
		Base
		X int `dbguard:"key=order:{No}"`
		Y int `dbguard:"key=order:{No}"`
	}
	type timed struct {
		Base
		X int `dbguard:"key=order:{At}"`
	}
	type notUnique struct {
		Base
		X int `dbguard:"key=order:{X}"`
	}
	each(t, func(t *testing.T, db *gorm.DB) {
		for _, tt := range []struct {
			model any
			want  string
		}{
			{&noKey{}, "must begin with key="},
			{&noField{}, "names no field"},
			{&unknown{}, `no column for "Nr"`},
			{&open{}, "not closed"},
			{&closed{}, "no opening"},
			{&twice{}, "second tag"},
			{&timed{}, "not unambiguous"},
			{&notUnique{X: 1}, "no unique index"},
		} {
			wantNil(t, db.AutoMigrate(tt.model))
			tx := begin(t, db, dbguard.Options{Key: "order:1"})
			if err := tx.DB().Create(tt.model).Error; err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%T: error is %v, want %q in it", tt.model, err, tt.want)
			}
			tx.Rollback()
		}
	})
}
