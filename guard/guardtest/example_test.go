package guardtest_test

import (
	"sync"
	"sync/atomic"
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

// Without a lock that holds, an order is still placed once: by its unique index.
func ExampleGuard_LoseAll() {
	test := func(t *testing.T, open func() *gorm.DB) {
		g := guardtest.New(t, open())
		g.LoseAll(true)
		var placed atomic.Int32
		var callers sync.WaitGroup
		for range 4 {
			instance := g.Peer(t, open())
			callers.Go(func() {
				if instance.Do(t.Context(), "order:1", guard.Insert(&Order{No: "1"})) == nil {
					placed.Add(1)
				}
			})
		}
		callers.Wait()
		if n := placed.Load(); n != 1 {
			t.Errorf("the order was placed %d times", n)
		}
	}
	_ = test
}
