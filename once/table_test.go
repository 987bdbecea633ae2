package once_test

import (
	"context"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/once"
)

var bg = context.Background()

func TestMain(m *testing.M) {
	teststack.Quiet()
	goleak.VerifyTestMain(m)
}

// each runs f on every database.
func each(t *testing.T, f func(t *testing.T, db *gorm.DB)) {
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) { f(t, open()) })
}

// TestMigrate: several processes may do it at once, and again.
func TestMigrate(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		if err := once.Check(bg, db); err == nil {
			t.Error("Check finds tables that are not there")
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := once.Migrate(bg, db); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if err := once.Migrate(bg, db); err != nil {
			t.Error(err)
		}
		if err := once.Check(bg, db); err != nil {
			t.Error(err)
		}
	})
}

func TestNoDatabase(t *testing.T) {
	t.Parallel()
	for _, db := range []*gorm.DB{nil, {}, {Config: &gorm.Config{}}} {
		if once.Migrate(bg, db) == nil || once.Check(bg, db) == nil {
			t.Error("no error without a database")
		}
		if _, err := once.NewPurger(db, once.PurgerConfig{}); err == nil {
			t.Error("no error without a database")
		}
	}
}
