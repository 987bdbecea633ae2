package shop

import (
	"context"
	"strconv"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
)

// A Way is how one of an item is sold where ways are compared.
type Way string

// The ways.
const (
	ForUpdate    Way = "for-update"    // SELECT ... FOR UPDATE
	AtomicUpdate Way = "atomic-update" // one UPDATE, which takes one if there is one; without an order
	Guarded      Way = "do"            // under the item's key
	Combined     Way = "do-combined"   // the same, and callers share transactions
)

// Sell sells one of an item. With an order number, the same transaction inserts the order.
func (s *Service) Sell(ctx context.Context, w Way, item int64, no string) Answer {
	var o *Order
	if no != "" {
		o = newOrder(no)
		o.Item = item
	}
	switch w {
	case ForUpdate:
		return judge(sellPessimistic(ctx, s.plain, item, o))
	case AtomicUpdate:
		return judge(sellAtomic(ctx, s.plain, item))
	case Guarded:
		return judge(s.sellGuarded(ctx, item, o))
	}
	return judge(s.sellGuarded(ctx, item, o, guard.Combine()))
}

// sellAtomic sells one of an item by a statement that is its own transaction.
func sellAtomic(ctx context.Context, db *gorm.DB, item int64) error {
	done := db.WithContext(ctx).Exec("UPDATE stocks SET remaining = remaining - 1 WHERE id = ? AND remaining > 0", item)
	if done.Error == nil && done.RowsAffected == 0 {
		return ErrSoldOut
	}
	return done.Error
}

// sellGuarded sells one of an item under its key, and inserts the order unless it is nil.
func (s *Service) sellGuarded(ctx context.Context, item int64, o *Order, opts ...guard.Option) error {
	change := guard.Update(&Stock{ID: item}, func(s *Stock) error { return take(&s.Remaining) })
	if o != nil {
		change = guard.All(guard.Insert(o), change)
	}
	key := BelayStock.Key(strconv.FormatInt(item, 10))
	return s.belay.Guard.Apply(ctx, key, change, append(opts, guard.Wait(waitLimit))...)
}
