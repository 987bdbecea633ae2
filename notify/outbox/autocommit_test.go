package outbox_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify/outbox"
)

// TestEventsAreCommittedWithoutAutocommit: the settings of a session leave no statement of the
// outbox uncommitted, and no transaction open behind it.
func TestEventsAreCommittedWithoutAutocommit(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"&autocommit=0", "&completion_type=1"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			dsn := teststack.MySQL(t)
			usual := migrated(t, testdb.OpenMySQL(t, dsn))
			testdb.WantNil(t, usual.Exec("CREATE TABLE other (id INT)").Error)
			odd := testdb.OpenMySQL(t, dsn+setting)
			if pool, err := odd.DB(); err != nil {
				t.Fatal(err)
			} else {
				pool.SetMaxOpenConns(1) // all share what another leaves behind
			}
			leave := func() { // what a program leaves on the connection
				var n int64
				testdb.WantNil(t, odd.Raw("SELECT COUNT(*) FROM other").Scan(&n).Error)
				testdb.WantNil(t, odd.Transaction(func(*gorm.DB) error { return nil }))
			}
			leave()
			store := open(t, odd, outbox.Config{})
			publish(t, store, 1)
			if n := rows(t, usual); n != 1 {
				t.Errorf("others see %d events, want the one that is stored", n)
			}
			leave()
			var relay recorder
			o := open(t, odd, outbox.Config{Relay: &relay})
			testwait.Until(t, "the event is relayed and deleted", func() bool {
				return relay.took(1)[0] == 1 && rows(t, usual) == 0
			})
			testdb.WantNil(t, o.Close(t.Context()))
			testdb.WantNil(t, store.Ping(t.Context()))
			if found := store.Diagnose(t.Context()); found != nil {
				t.Error(found)
			}
			if setting == "&autocommit=0" {
				testwait.Until(t, "no transaction is open", func() bool { return testdb.Transactions(t, usual) == 0 })
			}
		})
	}
}
