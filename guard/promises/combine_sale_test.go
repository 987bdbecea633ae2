package promises_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
)

// A buyer inserts an order and takes one of the stock 1.
type buyer struct {
	order  Order
	stock  Stock
	change func(*Stock) error
	only   bool // inserts the order and nothing else
	takes  bool // changes the stock and nothing else
	serves once.Request

	was Order
	err error
}

// buyers are n buyers with orders of their own.
func buyers(n int) []*buyer {
	all := make([]*buyer, n)
	for i := range all {
		all[i] = &buyer{order: Order{No: fmt.Sprint("no-", i), Amount: i}}
	}
	return all
}

func (b *buyer) sale() guard.Change {
	b.was, b.stock = b.order, Stock{ID: 1}
	if b.change == nil {
		b.change = take
	}
	if b.only {
		return guard.Insert(&b.order)
	}
	if b.takes {
		return guard.Update(&b.stock, b.change)
	}
	return guard.All(guard.Insert(&b.order), guard.Update(&b.stock, b.change))
}

// sell has buyers buy in one transaction, in their order.
func (e *env) sell(all ...*buyer) {
	e.t.Helper()
	e.inside().NoTurnLimit()
	var waits sync.WaitGroup
	wantNil(e.t, e.Do(bg, "sku:1", func(context.Context, *gorm.DB) error {
		for i, b := range all {
			sale, opts := b.sale(), []guard.Option{guard.Wait(time.Minute), guard.Combine()}
			if b.serves.ID != "" {
				opts = append(opts, guard.For(b.serves))
			}
			waits.Go(func() {
				defer func() {
					if what := recover(); what != nil {
						b.err = fmt.Errorf("panic: %v", what)
					}
				}()
				b.err = e.Apply(bg, "sku:1", sale, opts...)
			})
			testwait.Until(e.t, "the buyer queues", func() bool { return e.inside().Lines() == 1 && e.inside().Queued("sku:1") == i })
		}
		return nil
	}))
	waits.Wait()
	for i, b := range all {
		if b.err != nil && (b.order != b.was || !b.only && b.stock != Stock{ID: 1}) {
			e.t.Errorf("buyer %d has the error %v, the order %+v and the stock %+v", i, b.err, b.order, b.stock)
		}
	}
}

// wantSold checks that the database has the orders of those who bought, as they have them,
// and of nobody else.
func (e *env) wantSold(all ...*buyer) {
	e.t.Helper()
	sold := int64(0)
	for i, b := range all {
		if b.err != nil {
			continue
		}
		sold++
		var o Order
		if err := e.db.Take(&o, "no = ?", b.order.No).Error; err != nil || o.ID != b.order.ID || o.Amount != b.order.Amount {
			e.t.Errorf("buyer %d has the order %+v, the database %+v: %v", i, b.order, o, err)
		}
	}
	if n := e.count(&Order{}); n != sold {
		e.t.Errorf("%d orders, want %d", n, sold)
	}
}

// statements counts the statements on tables that begin with a word.
func (e *env) statements(word string) *atomic.Int64 {
	e.t.Helper()
	var n atomic.Int64
	count := func(tx *gorm.DB) {
		if strings.HasPrefix(tx.Statement.SQL.String(), word) {
			n.Add(1)
		}
	}
	name := "test:count " + word
	wantNil(e.t, e.db.Callback().Create().After("gorm:create").Register(name, count))
	wantNil(e.t, e.db.Callback().Update().After("gorm:update").Register(name, count))
	return &n
}

// TestCombineSales: orders are inserted in one statement where their numbers are safe, and
// each buyer has its own.
func TestCombineSales(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 30})
		inserts, updates := e.statements("INSERT"), e.statements("UPDATE")
		all := buyers(40)
		e.sell(all...)
		for i, b := range all {
			if i >= 30 {
				wantIs(e.t, b.err, errSoldOut)
			} else if want := (Stock{ID: 1, Left: 29 - i, Version: dbguard.Version(2 + i)}); b.err != nil || b.stock != want || b.order.ID == 0 {
				e.t.Errorf("buyer %d got %+v, %+v and %v", i, b.order, b.stock, b.err)
			}
		}
		e.wantSold(all...)
		want := int64(1)
		if !e.returns() {
			want = 30
		}
		if inserts.Load() != want || updates.Load() != 1 {
			e.t.Errorf("%d INSERTs and %d UPDATEs, want %d and 1", inserts.Load(), updates.Load(), want)
		}
		e.wantNoEvent()
		e.wantFree("sku:1")
	})
}

// returns reports whether the database returns the numbers of new rows.
func (e *env) returns() bool {
	return slices.Contains(e.db.Callback().Create().Clauses, "RETURNING")
}

// TestCombineRepeats: a repeat of an order from before, or of another one in the crew, is
// ErrDuplicate, sold out or not, and takes nobody along.
func TestCombineRepeats(t *testing.T) {
	each(t, func(e *env) {
		for _, at := range []int{0, 2} {
			wantNil(e.t, e.db.Exec("DELETE FROM orders").Error)
			wantNil(e.t, e.db.Exec("DELETE FROM stocks").Error)
			e.create(&Stock{ID: 1, Left: 4}, &Order{No: "old"})
			all := buyers(8)
			all[at].order.No = "old"
			all[5].order.No = all[3].order.No
			all[7].order.No = "old" // sold out, too
			e.sell(all...)
			for i, b := range all {
				switch i {
				case at, 5, 7:
					wantIs(e.t, b.err, guard.ErrDuplicate)
				case 6:
					wantIs(e.t, b.err, errSoldOut)
				default:
					wantNil(e.t, b.err)
				}
			}
			wantNil(e.t, e.db.Delete(&Order{}, "no = ?", "old").Error)
			e.wantSold(all...)
			if s := e.stock(1); s.Left != 0 || s.Version != 5 {
				e.t.Errorf("the stock is %+v", s)
			}
		}
		e.wantNoEvent()
		e.wantFree("sku:1")
	})
}

// TestCombineTwinInACrewThatFails: the second of two equal orders is inserted if the first
// is not.
func TestCombineTwinInACrewThatFails(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9})
		all := buyers(3)
		all[2].order.No = all[1].order.No
		all[1].change = func(*Stock) error { return errSoldOut }
		e.sell(all...)
		wantNil(e.t, all[0].err)
		wantIs(e.t, all[1].err, errSoldOut)
		wantNil(e.t, all[2].err)
		e.wantSold(all...)
	})
}

// TestCombineOverlapOfInserts: those whose orders another caller has inserted without the
// lock are told, in one event, and nobody else. If another's row is protected, too, that
// may have been under a key of its own, unless the lock is gone.
func TestCombineOverlapOfInserts(t *testing.T) {
	eachServer(t, func(e *env) {
		for name, c := range map[string]struct {
			only, kept bool
			at         []int
		}{
			"the leader":               {only: true, at: []int{0}},
			"one of them":              {only: true, at: []int{2}},
			"two of them":              {only: true, at: []int{1, 3}},
			"the leader and the last":  {only: true, at: []int{0, 4}},
			"while the lock is held":   {only: true, at: []int{2}, kept: true},
			"a sale":                   {at: []int{2}},
			"two sales":                {at: []int{0, 3}},
			"a sale and the lock held": {at: []int{2}, kept: true},
		} {
			e.onSameDatabase(name, func(e *env) {
				e.create(&Stock{ID: 1, Left: 9})
				all := buyers(5)
				for _, b := range all {
					b.only = c.only
				}
				rivals := func(tx *gorm.DB) error {
					for _, at := range c.at {
						if err := tx.Create(&Order{No: all[at].order.No, Amount: 99}).Error; err != nil {
							return err
						}
					}
					return nil
				}
				other := e.open()
				var first sync.Once
				wantNil(e.t, e.db.Callback().Create().Before("gorm:create").Register("test:rival", func(tx *gorm.DB) {
					if !guardedInsert(tx) {
						return
					}
					first.Do(func() {
						if c.kept {
							wantNil(e.t, rivals(other))
							return
						}
						e.loseTo("sku:1", func(_ context.Context, tx *gorm.DB) error { return rivals(tx) })
					})
				}))
				e.sell(all...)
				for i, b := range all {
					switch {
					case !slices.Contains(c.at, i):
						wantNil(e.t, b.err)
					case c.kept && !c.only: // alone it runs after the others, and is a repeat
						wantIs(e.t, b.err, guard.ErrDuplicate)
					default:
						wantIs(e.t, b.err, guard.ErrIntercepted)
					}
				}
				if c.kept && !c.only {
					e.wantNoEvent()
				} else if ev := e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "sku:1"); ev.Count != len(c.at) || ev.Table != "orders" {
					e.t.Errorf("the event counts %d, of %q", ev.Count, ev.Table)
				}
				wantNil(e.t, e.db.Delete(&Order{}, "amount = 99").Error)
				e.wantSold(all...)
			})
		}
	})
}

// TestCombineOverlapOfNobodysRow: a refused INSERT shows that another caller has inserted
// the order of one whose change panicked. No answer of the others rests on that.
func TestCombineOverlapOfNobodysRow(t *testing.T) {
	eachServer(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9}, &Order{ID: 7, No: "other"})
		all := buyers(4)
		all[1].order.ID = 7 // which another row has
		all[2].change = func(*Stock) error { panic("boom") }
		var first sync.Once
		wantNil(e.t, e.db.Callback().Create().Before("gorm:create").Register("test:rival", func(tx *gorm.DB) {
			if guardedInsert(tx) {
				first.Do(func() { e.loseTo("sku:1", guard.Insert(&Order{No: all[2].order.No, Amount: 99}).Run) })
			}
		}))
		e.sell(all...)
		wantNil(e.t, all[0].err)
		wantNil(e.t, all[3].err)
		if conflict, ok := errors.AsType[*dbguard.ConflictError](all[1].err); !ok || errors.Is(all[1].err, guard.ErrIntercepted) {
			e.t.Errorf("the buyer with another's number got %v, %v", all[1].err, conflict)
		}
		if ev := e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "sku:1"); ev.Count != 1 {
			e.t.Errorf("the event counts %d, want the one order", ev.Count)
		}
	})
}

// guardedInsert reports whether tx inserts orders for a crew.
func guardedInsert(tx *gorm.DB) bool {
	switch dest := tx.Statement.Dest.(type) {
	case []*Order:
		return true
	case *Order:
		return dest.Amount != 99
	}
	return false
}

// TestCombineRefusedInsert: what the database refuses is the error of the one who wrote it.
func TestCombineRefusedInsert(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9}, &Order{ID: 7, No: "other"})
		all := buyers(4)
		all[1].order.ID = 7 // which another row has
		all[2].change = func(*Stock) error { panic("boom") }
		e.sell(all...)
		for i, b := range all {
			if (b.err == nil) != (i == 0 || i == 3) {
				e.t.Errorf("buyer %d got %v", i, b.err)
			}
		}
		var conflict *dbguard.ConflictError
		if !errors.As(all[1].err, &conflict) || errors.Is(all[1].err, guard.ErrDuplicate) {
			e.t.Errorf("the buyer with another's number got %v", all[1].err)
		}
		wantNil(e.t, e.db.Delete(&Order{}, "no = ?", "other").Error)
		e.wantSold(all...)
		if s := e.stock(1); s.Left != 7 || s.Version != 3 {
			e.t.Errorf("the stock is %+v", s)
		}
		e.wantNoEvent()
	})
}

// TestCombineOwnErrorComesFirst: alone, an Insert before the Update meets the database
// first. In a crew a change that fails has no row inserted.
func TestCombineOwnErrorComesFirst(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 1}, &Order{ID: 7, No: "other"})
		all := buyers(2)
		all[1].order.ID = 7 // which another row has
		e.sell(all...)
		wantNil(e.t, all[0].err)
		wantIs(e.t, all[1].err, errSoldOut)

		alone := Order{ID: 7, No: "no-2"}
		err := e.Apply(bg, "sku:1", guard.All(guard.Insert(&alone), guard.Update(&Stock{ID: 1}, take)))
		if _, ok := errors.AsType[*dbguard.ConflictError](err); !ok {
			e.t.Errorf("alone the buyer got %v, want a conflict", err)
		}
	})
}

// TestCombineRefusedRow: likewise in one INSERT of all.
func TestCombineRefusedRow(t *testing.T) {
	eachServer(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9})
		all := buyers(4)
		all[2].order.No = strings.Repeat("x", 65)
		e.sell(all...)
		for i, b := range all {
			if (b.err == nil) != (i != 2) {
				e.t.Errorf("buyer %d got %v", i, b.err)
			}
		}
		e.wantSold(all...)
		e.wantNoEvent()
	})
}

// TestCombineSalesRunAgain: a deadlock costs nobody anything, and hides no overlap.
func TestCombineSalesRunAgain(t *testing.T) {
	each(t, func(e *env) {
		e.prepareDeadlocks()
		e.create(&Stock{ID: 1, Left: 100})
		all := buyers(5)
		e.deadlocks(2)
		e.sell(all...)
		for _, b := range all {
			wantNil(e.t, b.err)
		}
		e.wantSold(all...)
		e.wantNoEvent()
	})
}

// TestCombineDeadlockHidesNoOverlap: an order that another caller has inserted between two
// attempts of a crew is no repeat.
func TestCombineDeadlockHidesNoOverlap(t *testing.T) {
	eachServer(t, func(e *env) {
		e.prepareDeadlocks()
		e.create(&Stock{ID: 1, Left: 100})
		all := buyers(3)
		for _, b := range all {
			b.only = true
		}
		var first sync.Once
		wantNil(e.t, e.db.Callback().Create().Before("gorm:create").Register("test:rival", func(tx *gorm.DB) {
			if guardedInsert(tx) {
				first.Do(func() {
					e.loseTo("sku:1", guard.Insert(&Order{No: all[1].order.No, Amount: 99}).Run)
					_ = tx.AddError(errDeadlock)
				})
			}
		}))
		e.sell(all...)
		wantNil(e.t, all[0].err)
		wantNil(e.t, all[2].err)
		wantIs(e.t, all[1].err, guard.ErrIntercepted)
		e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "sku:1")
	})
}

// TestCombineTriggers: a trigger of the orders writes the stock, which a crew would have
// loaded before.
func TestCombineTriggers(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 100})
		e.trigger()
		all := buyers(4)
		e.sell(all...)
		for _, b := range all {
			wantNil(e.t, b.err)
		}
		e.wantSold(all...)
		if s := e.stock(1); s.Left != 92 || s.Version != 5 {
			e.t.Errorf("the stock is %+v, want 4 that the callers took and 4 that the trigger did", s)
		}
		e.wantNoEvent()
	})
}

// trigger has each order take one of the stock 1.
func (e *env) trigger() {
	e.t.Helper()
	update := "UPDATE stocks SET " + e.db.Statement.Quote("left") + " = " + e.db.Statement.Quote("left") + " - 1 WHERE id = 1"
	switch e.db.Name() {
	case "postgres":
		wantNil(e.t, e.db.Exec("CREATE FUNCTION sell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "+update+"; RETURN NEW; END $$").Error)
		wantNil(e.t, e.db.Exec("CREATE TRIGGER sell AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION sell()").Error)
	case "mysql":
		wantNil(e.t, e.db.Exec("CREATE TRIGGER sell AFTER INSERT ON orders FOR EACH ROW "+update).Error)
	default:
		wantNil(e.t, e.db.Exec("CREATE TRIGGER sell AFTER INSERT ON orders FOR EACH ROW BEGIN "+update+"; END").Error)
	}
}

// TestCombineSaleOrders: the steps of a sale may come in another order, and a buyer whose
// change ends its goroutine leaves no order behind.
func TestCombineSaleOrders(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 100})
		e.inside().NoTurnLimit()
		var all sync.WaitGroup
		var failed atomic.Int64
		wantNil(e.t, e.Do(bg, "sku:1", func(context.Context, *gorm.DB) error {
			for i := range 6 {
				all.Go(func() {
					change := take
					if i == 2 {
						change = func(s *Stock) error { runtime.Goexit(); return nil }
					}
					sale := guard.All(guard.Update(&Stock{ID: 1}, change), guard.Insert(&Order{No: fmt.Sprint(i)}))
					if err := e.Apply(bg, "sku:1", sale, guard.Wait(time.Minute), guard.Combine()); err != nil {
						failed.Add(1)
					}
				})
				testwait.Until(e.t, "the buyer queues", func() bool { return e.inside().Lines() == 1 && e.inside().Queued("sku:1") == i })
			}
			return nil
		}))
		all.Wait()
		if s := e.stock(1); failed.Load() != 0 || s.Left != 95 || e.count(&Order{}) != 5 {
			e.t.Errorf("%d failed, the stock is %+v, with %d orders", failed.Load(), s, e.count(&Order{}))
		}
		e.wantNoEvent()
	})
}
