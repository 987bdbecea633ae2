package guardtest_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/notify"
)

// testLostLock is the body of a test without servers: db is an SQLite file, or a
// database of the service's own, locks are in memory and can be lost on purpose.
func testLostLock(t *testing.T, db *gorm.DB) {
	g := guardtest.New(t, db)

	err := g.Do(t.Context(), "order:1", func(_ context.Context, tx *gorm.DB) error {
		g.Forget("order:1") // as a failover does
		return tx.Create(&Order{No: "1"}).Error
	}, guard.Protects(&Order{No: "1"}))
	if err != nil {
		t.Fatal(err)
	}
	if events := g.Events.All(); len(events) != 1 || events[0].Verdict != notify.VerdictLost {
		t.Errorf("reported %v, want the lost lock", events)
	}

	err = g.Apply(t.Context(), "order:1", guard.Insert(&Order{No: "1"}))
	if !errors.Is(err, guard.ErrDuplicate) {
		t.Errorf("the second one returns %v, want ErrDuplicate", err)
	}
}

// A service is tested with a lock that gets lost: see testLostLock.
func Example() {
	_ = testLostLock
}

// place is the operation of a service: an order is placed once.
func place(ctx context.Context, g *guard.Guard, no string) error {
	return g.Apply(ctx, "order:"+no, guard.Insert(&Order{No: no}))
}

// testPlace is a whole test of it, on a database of its own. sqliteDialect stands for
// sqlite.Open of gorm.io/driver/sqlite, or of another driver.
func testPlace(t *testing.T) {
	g := guardtest.Open(t, sqliteDialect, &Order{})
	if err := place(t.Context(), g.Guard, "1"); err != nil {
		t.Error(err)
	}
	if err := place(t.Context(), g.Guard, "1"); !errors.Is(err, guard.ErrDuplicate) {
		t.Errorf("placed again: %v, want ErrDuplicate", err)
	}
}

// An operation is tested on a new database: see testPlace.
func ExampleOpen() {
	_ = testPlace
}

// testWithoutLocks is the body of a test of what holds when no lock does: an
// order is still placed once, by its unique index. open opens the database as
// each instance does.
func testWithoutLocks(t *testing.T, open func() *gorm.DB) {
	g := guardtest.New(t, open())
	g.LoseAll(true)

	var placed atomic.Int32
	var callers sync.WaitGroup
	for range 4 {
		instance := g.Peer(t, open())
		callers.Go(func() {
			if instance.Apply(t.Context(), "order:1", guard.Insert(&Order{No: "1"})) == nil {
				placed.Add(1)
			}
		})
	}
	callers.Wait()
	if n := placed.Load(); n != 1 {
		t.Errorf("the order was placed %d times", n)
	}
}

// The second layer is tested with locks that never hold: see testWithoutLocks.
func ExampleGuard_LoseAll() {
	_ = testWithoutLocks
}

// testTransfer is the body of a test of an operation with two keys: what is lost is the
// lock on the second one.
func testTransfer(t *testing.T, db *gorm.DB) {
	g := guardtest.New(t, db)

	err := g.Apply(t.Context(), "stock:1", guard.All(
		guard.Update(&Stock{ID: 1}, func(s *Stock) error {
			s.Left--
			return nil
		}),
		guard.Update(&Stock{ID: 2}, func(s *Stock) error {
			g.Forget("stock:2")
			s.Left++
			return nil
		}),
	), guard.Also("stock:2", &Stock{ID: 2}))
	if err != nil {
		t.Fatal(err)
	}
	if events := g.Events.All(); len(events) != 1 || events[0].Key != "stock:2" {
		t.Errorf("reported %v, want the lost lock of the second key", events)
	}
}

// An operation with two keys is tested with the lock on one of them lost: see
// testTransfer.
func ExampleGuard_Forget() {
	_ = testTransfer
}
