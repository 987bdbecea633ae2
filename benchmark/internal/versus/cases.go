package versus

import (
	"context"
	"strconv"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/shop"
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

// A Case is a method with one number of callers.
type Case struct {
	name    string
	callers int
	method  shop.Method
	value   func(h heat, n int64) string // what request number n of a heat is about
	repeats bool                         // to be refused is no error
}

// Cases returns those that list names, with commas between the names; the empty list
// names all.
func Cases(list string) ([]Case, error) {
	var all []Case
	// What is compared comes one right after the other.
	for _, c := range []int{1, 64, 500} {
		all = append(all, Case{bareInsert, c, shop.UniqueIndex, fresh, false}, Case{doInsert, c, shop.Belay, fresh, false})
	}
	for _, c := range []int{64, 500} {
		all = append(all, Case{indexHalf, c, shop.UniqueIndex, half, true}, Case{doHalf, c, shop.Belay, half, true})
	}
	for _, c := range []int{64, 500} {
		all = append(all, Case{forUpdate, c, shop.Pessimistic, item, false},
			Case{doUpdate, c, shop.BelayStock, item, false}, Case{casRetry, c, shop.Optimistic, item, false})
	}
	all = append(all, Case{doRepeat, 64, shop.Belay, old, true}, Case{doRepeatRemember, 64, shop.BelayMarked, old, true})
	return measure.Choose(list, all, func(c Case) string { return c.name })
}

func fresh(h heat, n int64) string { return h.no(n) }

// half has every second request repeat the one before it, at the same time.
func half(h heat, n int64) string { return h.no(n / 2) }

// old repeats orders that are there.
func old(h heat, n int64) string { return h.arena.seeded(n % seeded) }

func item(h heat, _ int64) string { return strconv.FormatInt(h.item, 10) }

// do makes request number n of a heat. With compare-and-set it tries again until it
// gets through, which is Done, or the time is up, which is Stale.
func (c Case) do(ctx context.Context, h heat, n int64) shop.Answer {
	if c.name != casRetry {
		return h.arena.shop.Do(ctx, c.method, c.value(h, n), false)
	}
	for {
		answer := h.arena.shop.SellOnce(ctx, h.item)
		if answer.Result != shop.Stale || time.Now().After(h.to) {
			return answer
		}
	}
}

// right reports whether an answer is one that the case is to get.
func (c Case) right(r shop.Result) bool {
	return r == shop.Done || c.repeats && (r == shop.Busy || r == shop.Duplicate)
}

// counted returns how often the case has taken effect in a heat, by the database.
func (c Case) counted(ctx context.Context, h heat) (n int64, err error) {
	if c.method.Sells() {
		err = h.arena.db.QueryRowContext(ctx, "SELECT ? - remaining FROM stocks WHERE id = ?", stocked, h.item).Scan(&n)
	} else {
		err = h.arena.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM orders WHERE no LIKE ?", h.prefix()+"%").Scan(&n)
	}
	return n, err
}
