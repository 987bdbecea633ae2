// Package drive uses Belay on a database, as a service does that has a driver of its choice.
package drive

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/once"
)

type order struct {
	ID uint
	No string `gorm:"size:64;not null;uniqueIndex"`
}

type wallet struct {
	ID      int64
	Cents   int64
	Version dbguard.Version
}

// Open returns a *gorm.DB of a dialector, with a pool of its own that is closed when the test ends.
func Open(t *testing.T, d gorm.Dialector) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(d, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return db
}

// Verdicts checks what becomes of an insert, an update and a request, and of their repeats, on an
// empty database, to which open opens pools. It makes the repeats with the memory of the first
// layer and without it, so that the database gives the verdict.
func Verdicts(t *testing.T, open func() *gorm.DB) {
	ctx, db := t.Context(), open()
	check := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	check("create tables", db.AutoMigrate(&order{}, &wallet{}), nil)
	g := guardtest.New(t, db)
	peer := g.Peer(t, open())
	insert := guard.Insert(&order{No: "1"})
	check("insert", g.Apply(ctx, "order:1", insert), nil)
	check("repeat", g.Apply(ctx, "order:1", guard.Insert(&order{No: "1"})), guard.ErrDuplicate)
	check("repeat elsewhere", peer.Apply(ctx, "order:1", guard.Insert(&order{No: "1"}), guard.Remember(0)), guard.ErrDuplicate)

	check("create", db.Create(&wallet{ID: 1, Cents: 3}).Error, nil)
	var read wallet
	check("read", db.Take(&read, 1).Error, nil)
	pay := func(w *wallet) guard.Change {
		return guard.Update(w, func(w *wallet) error { w.Cents--; return nil })
	}
	check("update", g.Apply(ctx, "wallet:1", pay(&wallet{ID: 1})), nil)
	check("update of an old version", g.Apply(ctx, "wallet:1", pay(&read)), guard.ErrStale)

	r := once.Request{Operation: "order", Scope: once.Anyone, ID: "1"}
	for n, caller := range []*guard.Guard{g.Guard, peer} {
		a, err := guard.Once(ctx, caller, r, func(_ context.Context, tx *gorm.DB) (int, error) {
			return 7, tx.Create(&order{No: "2"}).Error
		})
		if err != nil || a.Value != 7 || a.Replayed != (n == 1) {
			t.Errorf("Once, call %d: %+v, %v", n, a, err)
		}
	}
	if events := g.Events.All(); len(events) != 0 {
		t.Errorf("%d events, want none: %v", len(events), events)
	}
}

// Overlap checks the verdict on two callers that both believe to have the lock, on a database that
// Verdicts has used and that takes writes of two transactions at a time.
func Overlap(t *testing.T, open func() *gorm.DB) {
	g := guardtest.New(t, open())
	peer := g.Peer(t, open())
	err := g.Do(t.Context(), "order:3", func(_ context.Context, tx *gorm.DB) error {
		g.Forget("order:3")
		if err := peer.Apply(t.Context(), "order:3", guard.Insert(&order{No: "3"})); err != nil {
			t.Errorf("the other caller: %v", err)
		}
		return tx.Create(&order{No: "3"}).Error
	}, guard.Protects(&order{No: "3"}))
	if events := g.Events.All(); !errors.Is(err, guard.ErrIntercepted) || len(events) != 1 {
		t.Errorf("%v and %d events, want ErrIntercepted and one", err, len(events))
	}
}
