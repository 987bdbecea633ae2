package guardtest_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
)

// A service is tested without servers: the database is an SQLite file or one of
// the service's own, locks are in memory, and what is reported is in Events.
func Example() {
	test := func(t *testing.T, db *gorm.DB) {
		g := guardtest.New(t, db)
		if err := g.Do(t.Context(), "order:1", guard.Insert(&Order{No: "1"})); err != nil {
			t.Fatal(err)
		}
		if events := g.Events.All(); len(events) > 0 {
			t.Errorf("reported %v", events)
		}
	}
	_ = test
}
