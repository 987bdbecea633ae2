package promises_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/notify"
)

// TestChangeReplacesTheRow: a change that assigns a whole struct takes the
// version away, and the compare with it.
func TestChangeReplacesTheRow(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9})
		wantNil(e.t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, func(s *Stock) error {
			*s = Stock{ID: s.ID, Left: s.Left - 1, Version: 70}
			return nil
		})))
		if s := e.stock(1); s.Left != 8 || s.Version != 2 {
			e.t.Errorf("stock is %+v, want left 8 and version 2", s)
		}
	})
	eachServer(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9})
		wantIs(e.t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, func(s *Stock) error {
			e.loseTo("sku:1", guard.Update(&Stock{ID: 1}, take).Run)
			*s = Stock{ID: s.ID, Left: s.Left - 1}
			return nil
		})), guard.ErrIntercepted)
		if s := e.stock(1); s.Left != 8 || s.Version != 2 {
			e.t.Errorf("stock is %+v, want the other's update only", s)
		}
		e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "sku:1")
	})
}

func TestChangeAltersTheKey(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9}, &Stock{ID: 2, Left: 50})
		for _, id := range []int64{0, 2} {
			s := &Stock{ID: 1}
			if err := e.Apply(bg, "sku:1", guard.Update(s, func(s *Stock) error { s.ID = id; return nil })); err == nil {
				e.t.Errorf("row 1 was saved as row %d", id)
			}
			if *s != (Stock{ID: 1}) {
				e.t.Errorf("after a failure the row is %+v, want it as it was", *s)
			}
		}
		if s := e.stock(2); s.Left != 50 {
			e.t.Errorf("the other row is %+v", s)
		}
	})
}

// TestRowWithoutVersion: a column that was added with 0 for the rows there are
// would never be compared.
func TestRowWithoutVersion(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9})
		wantNil(e.t, e.db.Exec("UPDATE stocks SET version = 0").Error)
		wantIs(e.t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take)), dbguard.ErrVersion)
		if s := e.stock(1); s.Left != 9 {
			e.t.Errorf("stock is %+v, want it unchanged", s)
		}
	})
}

type Parcel struct {
	ID      int64
	Left    int
	Version *dbguard.Version
}

func TestPointerToVersion(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.db.AutoMigrate(&Parcel{}))
		e.create(&Parcel{ID: 1, Left: 9})
		row := &Parcel{ID: 1}
		change := func(p *Parcel) error { p.Left--; p.Version = nil; return nil }
		wantNil(e.t, e.Apply(bg, "parcel:1", guard.Update(row, change)))
		if row.Version == nil || *row.Version != 2 || row.Left != 8 {
			e.t.Errorf("row is %+v, want left 8 and version 2", row)
		}
		old := dbguard.Version(1)
		wantIs(e.t, e.Apply(bg, "parcel:1", guard.Update(&Parcel{ID: 1, Version: &old}, change)), guard.ErrStale)
	})
}

func TestNotAStruct(t *testing.T) {
	e := onSQLite(t)
	stock, order := &Stock{ID: 1}, &Order{No: "a"}
	var none *Stock
	for name, change := range map[string]guard.Change{
		"update of a pointer":     guard.Update(&stock, func(**Stock) error { return nil }),
		"update of a nil pointer": guard.Update(&none, func(**Stock) error { return nil }),
		"update of nil":           guard.Update(none, take),
		"update without a change": guard.Update(stock, nil),
		"insert of a pointer":     guard.Insert(&order),
		"insert of a slice":       guard.Insert(&[]Order{{No: "a"}}),
		"insert of nil":           guard.Insert[Order](nil),
		"insert of a map":         guard.Insert(&map[string]any{"no": "a"}),
	} {
		if err := e.Apply(bg, "k", change); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if n := e.count(&Order{}); n != 0 {
		t.Errorf("%d rows, want none", n)
	}
}

// TestOuterDB: a Change notices a db that is not the tx.
func TestOuterDB(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9})
		for _, op := range []guard.Op{guard.Insert(&Order{No: "a"}).Run, guard.Update(&Stock{ID: 1}, take).Run} {
			wantIs(e.t, e.Do(bg, "k", func(ctx context.Context, _ *gorm.DB) error { return op(ctx, e.db) }), dbguard.ErrOutside)
		}
		if n := e.count(&Order{}); n != 0 {
			e.t.Errorf("%d rows outside the transaction", n)
		}
	})
}

// TestTwoInserts: each names its own row.
func TestTwoInserts(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Order{No: "b"})
		wantIs(e.t, e.Do(bg, "orders:a,b", func(ctx context.Context, tx *gorm.DB) error {
			return errors.Join(guard.Insert(&Order{No: "a"}).Run(ctx, tx), guard.Insert(&Order{No: "b"}).Run(ctx, tx))
		}), guard.ErrDuplicate)
		e.wantNoEvent()
	})
}

// TestAll: several changes are one transaction, and are made again together.
func TestAll(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 1})
		e.prepareDeadlocks()
		sell := func(no string) (guard.Change, *Order, *Stock) {
			o, s := &Order{No: no}, &Stock{ID: 1}
			return guard.All(guard.Insert(o), guard.Update(s, take)), o, s
		}

		change, o, s := sell("a")
		e.deadlocks(3)
		wantNil(e.t, e.Apply(bg, "sku:1", change))
		if o.ID == 0 || s.Left != 0 || s.Version != 2 {
			e.t.Errorf("order %+v, stock %+v, want both as they were saved", o, s)
		}

		change, o, s = sell("b")
		wantIs(e.t, e.Apply(bg, "sku:1", change), errSoldOut)
		if o.ID != 0 || *s != (Stock{ID: 1}) {
			e.t.Errorf("order %+v, stock %+v, want both as they came", o, s)
		}
		change, _, _ = sell("a")
		wantIs(e.t, e.Apply(bg, "sku:1", change), guard.ErrDuplicate)
		wantNil(e.t, e.Apply(bg, "sku:1", guard.All()))
		if n := e.count(&Order{}); n != 1 || e.stock(1).Left != 0 {
			e.t.Errorf("%d orders, stock %+v, want one order and none left", n, e.stock(1))
		}
		e.wantNoEvent()
	})
}

// TestAllProtectsAllRows: a row of a later change counts from the first write on, so
// that a conflict on one of two rows is not taken for a lock failure while the key's lock
// is held.
func TestAllProtectsAllRows(t *testing.T) {
	eachServer(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9}, &Stock{ID: 2, Left: 9})
		payer := e.Peer(e.t, e.open())
		err := e.Apply(bg, "wallet:1", guard.All(
			guard.Update(&Stock{ID: 2}, func(s *Stock) error {
				wantNil(e.t, payer.Apply(bg, "wallet:2", guard.Update(&Stock{ID: 2}, take)))
				return take(s)
			}),
			guard.Update(&Stock{ID: 1}, take),
		))
		e.wantNoEvent()
		if err != nil {
			e.wantChanged(err)
		}
	})
}

type Ticket struct {
	ID uint
	No string `gorm:"size:64;uniqueIndex"`
}

func (m *Ticket) BeforeCreate(*gorm.DB) error {
	m.No = strings.ToLower(m.No)
	return nil
}

func TestInsertWithAHook(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.db.AutoMigrate(&Ticket{}))
		wantNil(e.t, e.Apply(bg, "ticket:a", guard.Insert(&Ticket{No: "A"})))
		again := &Ticket{No: "A"}
		wantIs(e.t, e.Apply(bg, "ticket:a", guard.Insert(again)), guard.ErrDuplicate)
		if *again != (Ticket{No: "A"}) {
			e.t.Errorf("after a failure the row is %+v, want it as it was", *again)
		}
		e.wantNoEvent()
	})
}

// TestSwallowedAndReturned: what an operation swallowed is not what it returns.
func TestSwallowedAndReturned(t *testing.T) {
	each(t, func(e *env) {
		mail := "m"
		e.create(&Order{No: "old", Email: &mail}, &Order{No: "a"}, &Stock{ID: 1, Left: 0})
		sellOut := func(tx *gorm.DB) {
			s := Stock{ID: 1, Version: 1}
			var c *dbguard.ConflictError
			if err := tx.Model(&s).Where(tx.Statement.Quote("left")+" > 0").Update("left", 0).Error; !errors.As(err, &c) || !c.Evidence.Expected {
				e.t.Fatalf("error is %v, want a conflict in which all is as expected", err)
			}
		}
		wantIs(e.t, e.Do(bg, "order:a", func(_ context.Context, tx *gorm.DB) error {
			sellOut(tx)
			return tx.Create(&Order{No: "a"}).Error
		}, guard.Protects(&Stock{ID: 1}, &Order{No: "a"})), guard.ErrDuplicate)

		err := e.Do(bg, "order:a", func(_ context.Context, tx *gorm.DB) error {
			wantIs(e.t, tryCreate(tx, &Order{No: "a"}), gorm.ErrDuplicatedKey)
			return tx.Create(&Order{No: "b", Email: &mail}).Error
		}, guard.Protects(&Order{No: "a"}))
		if errors.Is(err, guard.ErrDuplicate) || !errors.Is(err, gorm.ErrDuplicatedKey) {
			e.t.Errorf("error is %v, want the bare conflict of the e-mail", err)
		}
		e.wantNoEvent()
	})
}
