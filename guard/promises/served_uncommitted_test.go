package promises_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/once"
)

// TestServedReadsWhatIsCommitted: a request whose operation still runs has not taken effect,
// whatever the isolation level of the sessions is.
func TestServedReadsWhatIsCommitted(t *testing.T) {
	for _, level := range []string{"READ-UNCOMMITTED", "SERIALIZABLE"} {
		t.Run(level, func(t *testing.T) {
			dsn := teststack.MySQL(t)
			setting := "&transaction_isolation=%27" + level + "%27"
			if testdb.OpenMySQL(t, dsn).Exec("SELECT @@transaction_isolation").Error != nil {
				setting = "&tx_isolation=%27" + level + "%27" // MariaDB before 11.1
			}
			db := testdb.OpenMySQL(t, dsn+setting)
			wantNil(t, once.Migrate(bg, db))
			g := guardtest.New(t, db)
			oops := errors.New("the payment provider is away")
			err := g.Do(bg, "order:a", func(context.Context, *gorm.DB) error {
				if served, err := g.Served(bg, request("1")); served || err != nil {
					t.Errorf("served is %v, %v, while the operation runs", served, err)
				}
				return oops
			}, guard.For(request("1")))
			wantIs(t, err, oops)
		})
	}
}
