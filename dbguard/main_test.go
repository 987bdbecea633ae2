package dbguard_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

func TestMain(m *testing.M) {
	teststack.Quiet()
	// gorm's cache of prepared statements has a goroutine that nothing stops.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1"))
}

var (
	bg      = context.Background()
	wantIs  = testdb.WantIs
	wantNil = testdb.WantNil
)

type Stock struct {
	ID      int64
	Left    int
	Version dbguard.Version
}

// each runs f on an empty database of each kind, with dbguard installed.
func each(t *testing.T, f func(t *testing.T, db *gorm.DB)) {
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		db := open()
		wantNil(t, dbguard.Install(db))
		wantNil(t, dbguard.Install(db))
		wantNil(t, db.AutoMigrate(&Stock{}))
		f(t, db)
	})
}
