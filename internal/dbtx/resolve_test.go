package dbtx_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// resolve commits without an answer, whether the COMMIT arrives or not, and finds
// out what became of it.
func resolve(t *testing.T, tx *dbtx.Tx, k *testdb.Link, arrives bool) (dbtx.Outcome, error) {
	t.Helper()
	lose(t, tx, k, arrives)
	return tx.Resolve(bg)
}

// Models that know less of a table than the one that is written.
type (
	bareOrder  struct{ No string }
	briefOrder struct {
		ID uint
		No string
	}
	bareWare struct{ ID int64 }
)

// Ware is a row that is stamped.
type Ware struct {
	ID      int64 `gorm:"autoIncrement:false"`
	Left    int
	Version dbguard.Version
	Stamp   dbguard.Stamp
}

func (bareOrder) TableName() string  { return "orders" }
func (briefOrder) TableName() string { return "orders" }
func (bareWare) TableName() string   { return "wares" }

// TestResolveByTheWrittenModel: the row is known by the model that was written,
// whatever model was given to Protect.
func TestResolveByTheWrittenModel(t *testing.T) {
	insert := func(tx *gorm.DB) error { return tx.Create(&Order{No: "a", Shop: "s"}).Error }
	take := func(tx *gorm.DB) error {
		return tx.Model(&Ware{ID: 1, Version: 1}).Update("left", gorm.Expr(left(tx)+" - 1")).Error
	}
	for _, tt := range []struct {
		name  string
		row   any
		write func(tx *gorm.DB) error
	}{
		{"no primary key", &bareOrder{No: "a"}, insert},
		{"not all columns", &briefOrder{No: "a"}, insert},
		{"no version, no stamp", &bareWare{ID: 1}, take},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
				for _, arrives := range []bool{false, true} {
					wantNil(t, direct.AutoMigrate(&Ware{}))
					wantNil(t, direct.Where("1 = 1").Delete(&Ware{}).Error)
					wantNil(t, direct.Create(&Ware{ID: 1, Left: 5}).Error)
					tx := begin(t, db, dbtx.Options{})
					wantNil(t, tx.Protect(tt.row))
					wantNil(t, tt.write(tx.DB()))
					want := dbtx.NotCommitted
					if arrives {
						want = dbtx.Committed
					}
					if o, err := resolve(t, tx, k, arrives); o != want {
						t.Errorf("resolved as %v, %v, want %v", o, err, want)
					}
				}
			})
		})
	}
}

// TestKeyInAnotherForm: the database keeps a primary key otherwise than it was
// given. That is no sign of another row.
func TestKeyInAnotherForm(t *testing.T) {
	type Slot struct {
		At time.Time `gorm:"primaryKey"` // to the millisecond or microsecond
		No string    `gorm:"size:16;uniqueIndex"`
	}
	type Parcel struct {
		Code string `gorm:"primaryKey;type:integer"`
		No   string `gorm:"size:16;uniqueIndex"`
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)
	for _, tt := range []struct {
		name           string
		protected, row any
	}{
		{"a time that names the row", &Slot{At: at}, &Slot{At: at, No: "a"}},
		{"a time", &Slot{No: "a"}, &Slot{At: at, No: "a"}},
		{"digits that name the row", &Parcel{Code: "007"}, &Parcel{Code: "007", No: "a"}},
		{"digits", &Parcel{No: "a"}, &Parcel{Code: "007", No: "a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachMySQLLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
				wantNil(t, direct.AutoMigrate(&Slot{}, &Parcel{}))
				for _, arrives := range []bool{false, true} {
					want := dbtx.NotCommitted
					if arrives {
						want = dbtx.Unresolved
					}
					tx := begin(t, db, dbtx.Options{})
					wantNil(t, tx.Protect(tt.protected))
					wantNil(t, tx.DB().Create(tt.row).Error)
					if o, err := resolve(t, tx, k, arrives); o != want {
						t.Errorf("arrives %v: resolved as %v, %v, want %v", arrives, o, err, want)
					}
				}
			})
		})
	}
}

// TestResolveWithoutTheLock: whoever had it since may have deleted the row, or made it
// again.
func TestResolveWithoutTheLock(t *testing.T) {
	errGone := errors.New("gone")
	gone := dbtx.Options{Held: func() error { return errGone }}
	eachMySQLLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
		tx := begin(t, db, gone)
		wantNil(t, tx.Protect(&Order{No: "a"}))
		wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
		o, err := resolve(t, tx, k, false)
		if o != dbtx.Unresolved {
			t.Errorf("an insert is resolved as %v", o)
		}
		wantIs(t, err, errGone)

		wantNil(t, direct.Create(&Stock{ID: 1, Left: 5}).Error)
		tx = begin(t, db, gone)
		wantNil(t, tx.Protect(&Order{No: "a"}))
		wantNil(t, tx.Protect(&Stock{ID: 1}))
		wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
		wantNil(t, tx.DB().Model(&Stock{ID: 1, Version: 1}).Update("left", 4).Error)
		o, err = resolve(t, tx, k, false)
		if o != dbtx.Unresolved {
			t.Errorf("an update is resolved as %v", o)
		}
		wantIs(t, err, errGone)
	})
}

// TestResolveAwaitsTheSession: PostgreSQL only signals a session to end, and a read
// does not wait for what it has inserted. Here it hears nothing, and commits late.
func TestResolveAwaitsTheSession(t *testing.T) {
	dsn := teststack.Postgres(t) + "&search_path=public,pg_catalog"
	direct := testdb.OpenPostgres(t, dsn)
	prepare(t, direct)
	wantNil(t, direct.Exec("CREATE FUNCTION public.pg_terminate_backend(integer) RETURNS boolean LANGUAGE sql AS 'SELECT true'").Error)
	k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
	db := testdb.OpenPostgres(t, k.Through(t, dsn))
	wantNil(t, dbtx.Install(db))

	tx := begin(t, db, dbtx.Options{EndTimeout: time.Second})
	wantNil(t, tx.Protect(&Order{No: "a"}))
	wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
	_, pass := k.Hold()
	defer pass()
	wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
	ctx, cancel := context.WithTimeout(bg, 200*time.Millisecond)
	defer cancel()
	o, err := tx.Resolve(ctx)
	if o != dbtx.Unresolved {
		t.Errorf("resolved as %v", o)
	}
	wantIs(t, err, context.DeadlineExceeded)
	pass()
	testwait.Until(t, "the session commits", func() bool { return count(t, direct, &Order{}) == 1 })
}

// TestResolveEndsTheSession: a COMMIT that is on its way is rolled back, so that it takes no effect later.
func TestResolveEndsTheSession(t *testing.T) {
	dsn := teststack.Postgres(t)
	direct := testdb.OpenPostgres(t, dsn)
	prepare(t, direct)
	k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
	db := testdb.OpenPostgres(t, k.Through(t, dsn))
	wantNil(t, dbtx.Install(db))
	tx := begin(t, db, dbtx.Options{EndTimeout: time.Second})
	wantNil(t, tx.Protect(&Order{No: "a"}))
	wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
	_, pass := k.Hold()
	defer pass()
	wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
	ctx, cancel := context.WithTimeout(bg, 20*time.Second)
	defer cancel()
	if o, err := tx.Resolve(ctx); o != dbtx.NotCommitted || err != nil {
		t.Errorf("resolved as %v, %v", o, err)
	}
	pass()
	if n := count(t, direct, &Order{}); n != 0 {
		t.Errorf("%d orders, want none", n)
	}
}
