package dbtx_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

func TestMain(m *testing.M) {
	teststack.Quiet()
	goleak.VerifyTestMain(m,
		// gorm's cache of prepared statements has a goroutine that nothing stops.
		goleak.IgnoreAnyFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1"),
		// A query that has panicked never ends for database/sql.
		goleak.IgnoreAnyFunction("github.com/belaygo/belay/internal/sqlconn.Discard"),
		goleak.Cleanup(func(code int) {
			for _, f := range atEnd {
				f()
			}
			os.Exit(code)
		}))
}

var atEnd []func() // to run after all tests

var (
	bg      = context.Background()
	wantIs  = testdb.WantIs
	wantNil = testdb.WantNil
)

type Order struct {
	ID     uint
	No     string `gorm:"size:64;uniqueIndex"`
	Shop   string `gorm:"size:64;uniqueIndex:receipt"`
	Serial *int   `gorm:"uniqueIndex:receipt"`
}

type Stock struct {
	ID      int64
	Left    int
	Version dbguard.Version
}

// each runs f on an empty database of each kind, with dbtx installed.
func each(t *testing.T, f func(t *testing.T, db *gorm.DB)) {
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		db := open()
		prepare(t, db)
		f(t, db)
	})
}

func prepare(t *testing.T, db *gorm.DB) {
	t.Helper()
	wantNil(t, dbtx.Install(db))
	wantNil(t, dbtx.Install(db))
	wantNil(t, db.AutoMigrate(&Order{}, &Stock{}))
}

// left is the column of that name, which is a word of SQL, too.
func left(db *gorm.DB) string { return db.Statement.Quote("left") }

func begin(t *testing.T, db *gorm.DB, o dbtx.Options) *dbtx.Tx {
	t.Helper()
	return beginCtx(bg, t, db, o)
}

func beginCtx(ctx context.Context, t *testing.T, db *gorm.DB, o dbtx.Options) *dbtx.Tx {
	t.Helper()
	tx, err := dbtx.Begin(ctx, db, o)
	wantNil(t, err)
	t.Cleanup(tx.Rollback)
	return tx
}

func count(t *testing.T, db *gorm.DB, model any) int64 {
	t.Helper()
	var n int64
	wantNil(t, db.Model(model).Count(&n).Error)
	return n
}

func stock(t *testing.T, db *gorm.DB, id int64) Stock {
	t.Helper()
	var s Stock
	wantNil(t, db.Take(&s, id).Error)
	return s
}

func wantStale(t *testing.T, err error) {
	t.Helper()
	var c *dbguard.ConflictError
	if !errors.As(err, &c) || c.Kind != dbguard.Stale {
		t.Fatalf("error is %v, want a stale conflict", err)
	}
}

type Coupon struct {
	ID   uint
	Code *string `gorm:"size:32;uniqueIndex"`
}
