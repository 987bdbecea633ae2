package once_test

import (
	"context"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/once"
)

// TestPurgesAreCommittedWithoutAutocommit: nor does a check or a purge leave a transaction open.
func TestPurgesAreCommittedWithoutAutocommit(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"&autocommit=0", "&completion_type=1"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			dsn := teststack.MySQL(t)
			usual, odd := testdb.OpenMySQL(t, dsn), testdb.OpenMySQL(t, dsn+setting)
			testdb.WantNil(t, once.Migrate(bg, usual))
			pool, err := odd.DB()
			testdb.WantNil(t, err)
			pool.SetMaxOpenConns(1) // the purger shares what others leave behind
			fill(t, usual, 3)
			testdb.WantNil(t, odd.Transaction(func(tx *gorm.DB) error { return nil }))
			count(t, odd, "belay_once")
			p, err := once.NewPurger(odd, once.PurgerConfig{Keep: time.Minute, Every: time.Second})
			testdb.WantNil(t, err)
			testwait.Until(t, "the old rows are gone", func() bool {
				return count(t, usual, "belay_answer") == 1 && count(t, usual, "belay_once") == 1 // the newest
			})
			testdb.WantNil(t, p.Close(context.Background()))
			testdb.WantNil(t, once.Check(bg, odd))
			if setting == "&autocommit=0" {
				testwait.Until(t, "no transaction is open", func() bool { return testdb.Transactions(t, usual) == 0 })
			}
		})
	}
}
