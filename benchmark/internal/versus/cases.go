package versus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/guard"
)

// The names of the cases.
const (
	bareInsert       = "bare-tx-insert"
	doInsert         = "do-insert"
	indexHalf        = "unique-index-half-repeats"
	doHalf           = "do-insert-half-repeats"
	forUpdate        = "for-update"
	casRetry         = "cas-retry"
	doUpdate         = "do-update"
	doRepeat         = "do-insert-repeat"
	doRepeatRemember = "do-insert-repeat-remembered"
)

// A contest is one case with one number of callers.
type contest struct {
	name    string
	callers int
	deed    deed
	counted func(context.Context, heat) (int64, error) // how often it has taken effect, by the database
}

// A deed is request number n of a heat. done tells that it has changed
// something; a request that was refused as it should be is no error.
type deed func(ctx context.Context, h heat, n int64) (done bool, err error)

// ErrCase: no case has that name.
var ErrCase = errors.New("no such case")

// contests returns those with the given names, or all.
func contests(names []string) (all []contest, err error) {
	known := make(map[string]bool)
	add := func(name string, d deed, counted func(context.Context, heat) (int64, error), callers ...int) {
		known[name] = true
		if len(names) > 0 && !slices.Contains(names, name) {
			return
		}
		for _, c := range callers {
			all = append(all, contest{name, c, d, counted})
		}
	}
	// What is compared comes one right after the other.
	for _, c := range []int{1, 64, 500} {
		add(bareInsert, insertBare, orders, c)
		add(doInsert, insertGuarded, orders, c)
	}
	for _, c := range []int{64, 500} {
		add(indexHalf, half(insertBare), orders, c)
		add(doHalf, half(insertGuarded), orders, c)
	}
	for _, c := range []int{64, 500} {
		add(forUpdate, sellForUpdate, sold, c)
		add(doUpdate, sellGuarded, sold, c)
		add(casRetry, sellCAS, sold, c)
	}
	add(doRepeat, repeat(), orders, 64)
	add(doRepeatRemember, repeat(guard.Remember(remembered)), orders, 64)
	for _, name := range names {
		if !known[name] {
			return nil, fmt.Errorf("%w: %q", ErrCase, name)
		}
	}
	return all, nil
}

func insertBare(ctx context.Context, h heat, n int64) (bool, error) {
	return done(shop.InsertOrder(ctx, h.arena.plain, shop.NewOrder(h.no(n))))
}

func insertGuarded(ctx context.Context, h heat, n int64) (bool, error) {
	no := h.no(n)
	return done(h.arena.guard.Apply(ctx, "order:"+no, guard.Insert(shop.NewOrder(no))))
}

// half has every second request ask for what the one before it asked for, at
// once.
func half(d deed) deed {
	return func(ctx context.Context, h heat, n int64) (bool, error) {
		ok, err := d(ctx, h, n/2)
		if refused(err) {
			err = nil
		}
		return ok, err
	}
}

func sellForUpdate(ctx context.Context, h heat, _ int64) (bool, error) {
	return done(shop.SellPessimistic(ctx, h.arena.plain, h.item))
}

// sellCAS tries again until it gets through or the time is up.
func sellCAS(ctx context.Context, h heat, _ int64) (bool, error) {
	for {
		err := shop.SellOptimisticOnce(ctx, h.arena.plain, h.item)
		if !errors.Is(err, shop.ErrConflict) || time.Now().After(h.to) {
			return done(err)
		}
	}
}

func sellGuarded(ctx context.Context, h heat, _ int64) (bool, error) {
	key := fmt.Sprintf("stock:%s:%d", h.arena.prefix, h.item)
	return done(h.arena.guard.Apply(ctx, key, shop.SellGuarded(h.item), guard.Wait(time.Minute)))
}

// Orders that are there when the heats begin, and for how long the first layer
// remembers them.
const (
	seeded     = 4096
	remembered = time.Hour
)

func repeat(opts ...guard.Option) deed {
	return func(ctx context.Context, h heat, n int64) (bool, error) {
		no := h.arena.seeded(n % seeded)
		err := h.arena.guard.Apply(ctx, "order:"+no, guard.Insert(shop.NewOrder(no)), opts...)
		if refused(err) {
			return false, nil
		}
		return true, err // it should not have gone through: the count of orders will tell
	}
}

// seed inserts the orders that are there. There are as many seeders as
// connections, so that all are open when the heats begin.
func (a *arena) seed(ctx context.Context, seeders int) error {
	errs := make([]error, seeders)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for n := int64(i); n < seeded && errs[i] == nil; n += int64(seeders) {
				no := a.seeded(n)
				errs[i] = a.guard.Apply(ctx, "order:"+no, guard.Insert(shop.NewOrder(no)), guard.Remember(remembered))
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("insert the orders that are repeated: %w", err)
	}
	return nil
}

func (a *arena) seeded(n int64) string { return fmt.Sprintf("%s-s-%09d", a.prefix, n) }

func done(err error) (bool, error) { return err == nil, err }

// refused reports whether err is the answer that a repeat should get.
func refused(err error) bool {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && e.Number == 1062 {
		return true
	}
	return errors.Is(err, guard.ErrBusy) || errors.Is(err, guard.ErrDuplicate)
}

// orders counts those that a heat has inserted.
func orders(ctx context.Context, h heat) (n int64, err error) {
	err = h.arena.plain.WithContext(ctx).Model(&shop.Order{}).Where("no LIKE ?", h.prefix()+"%").Count(&n).Error
	return n, err
}

// sold counts what a heat has sold.
func sold(ctx context.Context, h heat) (int64, error) {
	var s shop.PlainStock
	err := h.arena.plain.WithContext(ctx).Take(&s, h.item).Error
	return stocked - int64(s.Remaining), err
}
