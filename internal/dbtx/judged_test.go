package dbtx_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
)

func onPG(t *testing.T, f func(t *testing.T, db *gorm.DB)) {
	eachServer(t, func(t *testing.T, db *gorm.DB) {
		if db.Name() == "postgres" {
			f(t, db)
		}
	})
}

type History struct {
	ID uint
	No string `gorm:"size:64"`
}

// followed to a table where the columns name no row.
func TestLogOfRowsIsNotFollowed(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Table("order_history").AutoMigrate(&History{}))
		for _, q := range []string{"ALTER TABLE order_history ADD shop varchar(64)", "ALTER TABLE order_history ADD serial int"} {
			wantNil(t, db.Exec(q).Error)
		}
		wantNil(t, db.Table("order_history").Create(&Order{ID: 5, No: "k"}).Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Order{No: "k"}))
		err := tx.DB().Table("order_history").Create(&Order{ID: 5, No: "k"}).Error
		c := refused(tx)
		if !business(c) {
			t.Errorf("err %v, evidence %+v", err, evidence(c))
		}
	})
}

func TestArchiveIsNotFollowed(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		if db.Name() != "mysql" {
			return
		}
		wantNil(t, db.Exec("CREATE TABLE order_log (id bigint unsigned, no varchar(64), shop varchar(64), serial int) ENGINE=MyISAM").Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Order{No: "k"}))
		wantNil(t, tx.DB().Table("order_log").Create(&Order{ID: 5, No: "k"}).Error)
	})
}

// another index fires, then the connection is lost before the reads after the rollback.
func TestAnotherIndexAndNoConnection(t *testing.T) {
	onPG(t, func(t *testing.T, db *gorm.DB) {
		n := 1
		wantNil(t, db.Create(&Order{No: "x", Shop: "s", Serial: &n}).Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Order{No: "k"}))
		var pid int
		wantNil(t, tx.DB().Raw("SELECT 1").Scan(&pid).Error)
		wantNil(t, db.Raw("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'").Scan(&pid).Error)
		if err := tx.DB().Create(&Order{No: "k", Shop: "s", Serial: &n}).Error; err == nil {
			t.Fatal("not refused")
		}
		wantNil(t, db.Exec("SELECT pg_terminate_backend(?, 5000)", pid).Error)
		c := refused(tx)
		if !business(c) {
			t.Errorf("evidence %+v", evidence(c))
		}
	})
}

type Telling struct {
	ID uint
	No string `gorm:"size:64;uniqueIndex"`
}

func (h *Telling) AfterCreate(*gorm.DB) error {
	return &pgconn.PgError{Code: "23503", Message: "of another database"}
}

// a hook returns the error of another database; the op swallows it.
func TestErrorOfAnotherDatabase(t *testing.T) {
	onPG(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Telling{}))
		tx := begin(t, db, dbtx.Options{})
		if err := tx.DB().Create(&Telling{No: "k"}).Error; err == nil {
			t.Fatal("no error")
		}
		if err := tx.Poisoned(); err != nil {
			t.Error(err)
		}
	})
}

type A8 struct {
	ID      int64
	No      string `gorm:"size:64;uniqueIndex"`
	Version dbguard.Version
}

func (A8) TableName() string { return "a8" }

type B8 struct {
	No      string `gorm:"primaryKey;size:64"`
	Version dbguard.Version
}

func (B8) TableName() string { return "a8" }

// two models of one table with different primary keys.
func TestModelsWithDifferentKeys(t *testing.T) {
	eachServer(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&A8{}))
		wantNil(t, db.Create(&A8{ID: 7, No: "k"}).Error)
		wantNil(t, db.Model(&A8{}).Where("id = 7").Update("version", 2).Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&B8{No: "k"}))
		var a A8
		wantNil(t, tx.DB().Where("no = ?", "k").Take(&a).Error)
		a.Version = 1
		err := tx.DB().Updates(&a).Error
		c := refused(tx)
		if !errors.As(err, new(*dbguard.ConflictError)) || !repeat(c) {
			t.Errorf("err %v, evidence %+v", err, evidence(c))
		}
	})
}

// a harmless function comes first.
func TestFunctionThatIsKnown(t *testing.T) {
	onPG(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Exec("CREATE SEQUENCE numbers").Error)
		tx := begin(t, db, dbtx.Options{})
		var n int
		wantNil(t, tx.DB().Raw("SELECT nextval('numbers')").Scan(&n).Error)
		wantNil(t, tx.Protect(&Order{No: "k"}))
		wantNil(t, db.Create(&Order{No: "k"}).Error)
		if tx.DB().Create(&Order{No: "k"}).Error == nil {
			t.Fatal("not refused")
		}
		if c := refused(tx); !overlap(c) {
			t.Errorf("evidence %+v", evidence(c))
		}
	})
}

type PubOrder struct {
	ID uint
	No string `gorm:"size:64;uniqueIndex"`
}

func (PubOrder) TableName() string { return "public.orders" }

// another model names the table with its schema.
func TestTwinWithSchema(t *testing.T) {
	onPG(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Order{No: "k"}).Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&PubOrder{No: "k"}))
		_ = tx.DB().Create(&Order{No: "k"}).Error
		if c := refused(tx); !repeat(c) {
			t.Errorf("evidence %+v", evidence(c))
		}
	})
}

// TestSwallowedOverlapBehindAnInsert: the operation has inserted another protected row,
// meets the rival's in a nested transaction, and goes on.
func TestSwallowedOverlapBehindAnInsert(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		if db.Name() == "sqlite" {
			return // one transaction writes at a time
		}
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Order{No: "a"}))
		wantNil(t, tx.Protect(&Order{No: "b"}))
		wantNil(t, db.Create(&Order{No: "b"}).Error)
		wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
		wantIs(t, tx.DB().Transaction(func(tx *gorm.DB) error { return tx.Create(&Order{No: "b"}).Error }), gorm.ErrDuplicatedKey)
		if c := tx.Conflict(); !overlap(c) || tx.Poisoned() == nil {
			t.Errorf("conflict is %+v with evidence %+v, want an overlap before the commit", c, evidence(c))
		}
	})
}

// TestFailedSerializationNamesTheRow: of several protected rows, the conflict names the one
// that has changed.
func TestFailedSerializationNamesTheRow(t *testing.T) {
	onPG(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.DB().Exec("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").Error)
		wantNil(t, tx.Protect(&Order{No: "k"}))
		wantNil(t, tx.Protect(&Stock{ID: 1}))
		wantNil(t, db.Model(&Stock{ID: 1, Version: 1}).Update("left", 4).Error)
		if tx.DB().Model(&Stock{ID: 1, Version: 1}).Update("left", 3).Error == nil {
			t.Fatal("not refused")
		}
		if c := refused(tx); !overlap(c) || c.Table != "stocks" || c.Columns[0] != "id" {
			t.Errorf("conflict is %v with evidence %+v", c, evidence(c))
		}
	})
}
