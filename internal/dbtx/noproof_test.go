package dbtx_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/tablerow"
	"github.com/belaygo/belay/internal/testdb"
)

// Bale has a name beside its primary key, which the program may choose.
type Bale struct {
	ID      string `gorm:"primaryKey;size:32"`
	Code    string `gorm:"size:32;uniqueIndex"`
	Version dbguard.Version
	Stamp   dbguard.Stamp
}

// Carton has a key that the database makes.
type Carton struct {
	ID      int64
	Code    string `gorm:"size:32;uniqueIndex"`
	Version dbguard.Version
	Stamp   dbguard.Stamp
}

// TestRenamedInTheTransaction: the row of a name that was inserted and then given up is
// missing because this transaction was committed.
func TestRenamedInTheTransaction(t *testing.T) {
	raw := func(tx *dbtx.Tx) error {
		return tx.DB().Exec("INSERT INTO bales (id, code, version, stamp) VALUES ('x', ?, 1, 1)", "a").Error
	}
	create := func(tx *dbtx.Tx) error { return tx.DB().Create(&Bale{ID: "x", Code: "a"}).Error }
	for name, tt := range map[string]struct {
		insert, then func(tx *dbtx.Tx) error
	}{
		"saved": {create, func(tx *dbtx.Tx) error { return tx.DB().Save(&Bale{ID: "x", Code: "b", Version: 1}).Error }},
		"another name": {create, func(tx *dbtx.Tx) error {
			return tx.DB().Model(Bale{ID: "x", Code: "a", Version: 1}).Update("code", "b").Error
		}},
		"another name and key": {create, func(tx *dbtx.Tx) error {
			return tx.DB().Model(Bale{ID: "x", Code: "a", Version: 1}).Updates(map[string]any{"id": "y", "code": "b"}).Error
		}},
		"another name by SQL": {create, renameBale},
		"deleted":             {create, func(tx *dbtx.Tx) error { return tx.DB().Delete(&Bale{ID: "x", Version: 1}).Error }},
		"SQL, another name":   {raw, renameBale},
		"SQL, another name by GORM": {raw, func(tx *dbtx.Tx) error {
			return tx.DB().Model(Bale{ID: "x", Code: "a", Version: 1}).Update("code", "b").Error
		}},
	} {
		t.Run(name, func(t *testing.T) {
			eachMySQLLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
				wantNil(t, direct.AutoMigrate(&Bale{}))
				tx := begin(t, db, dbtx.Options{})
				wantNil(t, tx.Protect(tablerow.New("bales", []any{"code", "a"})))
				wantNil(t, tt.insert(tx))
				wantNil(t, tt.then(tx))
				if o, err := resolve(t, tx, k, true); o == dbtx.NotCommitted {
					t.Errorf("resolved as %v, %v", o, err)
				}
			})
		})
	}
}

// renameBale gives the bale another name by an UPDATE whose columns Belay does not know.
func renameBale(tx *dbtx.Tx) error {
	return tx.UpdateRow(bg, tablerow.New("bales", []any{"code", "a"}), 1, "code = 'b'", nil)
}

// TestRecreatedByAnother: a row that somebody without the lock deleted and made again
// has its first version, too.
func TestRecreatedByAnother(t *testing.T) {
	errGone := errors.New("gone")
	for name, write := range map[string]func(tx *gorm.DB, c *Carton) error{
		"update": func(tx *gorm.DB, c *Carton) error { return tx.Model(c).Update("code", "a").Error },
		"delete": func(tx *gorm.DB, c *Carton) error { return tx.Delete(c).Error },
	} {
		t.Run(name, func(t *testing.T) {
			eachMySQLLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
				wantNil(t, direct.AutoMigrate(&Carton{}))
				c := &Carton{Code: "a"}
				wantNil(t, direct.Create(c).Error)
				tx := begin(t, db, dbtx.Options{Held: func() error { return errGone }})
				wantNil(t, tx.Protect(&Carton{Code: "a"}))
				wantNil(t, write(tx.DB(), c))
				lose(t, tx, k, true)
				wantNil(t, direct.Exec("DELETE FROM cartons").Error)
				wantNil(t, direct.Create(&Carton{Code: "a"}).Error)
				o, err := tx.Resolve(bg)
				if o != dbtx.Unresolved {
					t.Errorf("resolved as %v", o)
				}
				wantIs(t, err, errGone)
			})
		})
	}
}

// TestMissingByItsName: the database keeps the name of an inserted row in another form,
// by which it is not found.
func TestMissingByItsName(t *testing.T) {
	type Tag struct {
		Code string `gorm:"primaryKey;type:char(8)"`
	}
	type Seal struct {
		ID   int64
		Code string `gorm:"size:32;uniqueIndex"`
	}
	eachMySQLLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
		wantNil(t, direct.AutoMigrate(&Tag{}, &Seal{}))
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Tag{Code: "a "}))
		wantNil(t, tx.DB().Create(&Tag{Code: "a "}).Error)
		if o, err := resolve(t, tx, k, true); o != dbtx.Unresolved {
			t.Errorf("padded: resolved as %v, %v", o, err)
		}

		wantNil(t, direct.Exec("CREATE TRIGGER trimmed BEFORE INSERT ON seals FOR EACH ROW SET NEW.code = CONCAT(NEW.code, '!')").Error)
		tx = begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Seal{Code: "a"}))
		wantNil(t, tx.DB().Create(&Seal{Code: "a"}).Error)
		if o, err := resolve(t, tx, k, true); o != dbtx.Committed { // by its generated key
			t.Errorf("altered by a trigger: resolved as %v, %v", o, err)
		}
	})
}

// TestNothingWritten: PostgreSQL knows that, too.
func TestNothingWritten(t *testing.T) {
	eachLink(t, func(t *testing.T, _, db *gorm.DB, k *testdb.Link) {
		if db.Name() != "postgres" {
			return
		}
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.DB().Exec("DELETE FROM stocks WHERE id = 999").Error)
		if o, err := resolve(t, tx, k, true); o != dbtx.Committed {
			t.Errorf("resolved as %v, %v", o, err)
		}
	})
}

// TestOtherFormIsNoSpelling: a database that gives a text back in its own form says
// nothing about how its writer spelled it.
func TestOtherFormIsNoSpelling(t *testing.T) {
	const id = "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"
	type Parcel struct {
		ID   int64
		UUID string `gorm:"type:uuid;uniqueIndex"`
	}
	eachServer(t, func(t *testing.T, db *gorm.DB) {
		if err := db.AutoMigrate(&Parcel{}); err != nil {
			return // MySQL has no such type
		}
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Parcel{UUID: id}))
		wantNil(t, db.Create(&Parcel{UUID: id}).Error)
		wantIs(t, tx.DB().Create(&Parcel{UUID: id}).Error, gorm.ErrDuplicatedKey)
		if c := refused(tx); !overlap(c) {
			t.Errorf("conflict is %+v with evidence %+v, want an overlap", c, evidence(c))
		}
	})
}

// TestOneRowOfTwoNames: a row that is protected by its name and by its primary key is
// one row, and the key may be its own.
func TestOneRowOfTwoNames(t *testing.T) {
	eachServer(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Carton{}))
		c := &Carton{Code: "a"}
		wantNil(t, db.Create(c).Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Carton{Code: "a"}))
		wantNil(t, tx.ProtectPrimary(c))
		rival := *c
		wantNil(t, db.Model(&rival).Update("code", "a").Error)
		if tx.DB().Model(c).Update("code", "a").Error == nil {
			t.Error("an old version was written")
		}
		if c := refused(tx); c == nil || c.Evidence.Shared {
			t.Errorf("conflict is %+v with evidence %+v", c, evidence(c))
		}
	})
}
