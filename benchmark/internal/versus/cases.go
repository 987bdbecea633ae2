package versus

import (
	"context"
	"fmt"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/guard"
)

// The names of the cases. The hot ones sell one item to all; a sale inserts an order, too.
const (
	bareInsert       = "bare-tx-insert"
	doInsert         = "do-insert"
	onceInsert       = "once-insert"
	indexHalf        = "unique-index-half-repeats"
	doHalf           = "do-insert-half-repeats"
	doRepeat         = "do-insert-repeat"
	doRepeatRemember = "do-insert-repeat-remembered"
	hotForUpdate     = "hot-for-update"
	hotAtomicUpdate  = "hot-atomic-update"
	hotDo            = "hot-do"
	hotDoFor         = "hot-do-for"
	hotDoCombined    = "hot-do-combined"
	hotForCombined   = "hot-do-for-combined"
	hotCASRetry      = "hot-cas-retry"
	saleForUpdate    = "sale-for-update"
	saleDo           = "sale-do"
	saleDoCombined   = "sale-do-combined"
)

// A Case is a way to do something, with one number of callers.
type Case struct {
	name      string
	callers   int // in all processes
	processes int
	way
}

// A way is what the callers of a case do.
type way struct {
	do      func(ctx context.Context, s *shop.Service, j job, n int64) shop.Answer // request number n
	sells   bool                                                                   // each that is done takes one of the item
	orders  bool                                                                   // each that is done inserts an order
	repeats bool                                                                   // to be refused is no error
}

func (c Case) key() caseKey { return caseKey{c.name, c.callers, c.processes} }

// ways returns all ways by the names of their cases.
func ways() map[string]way {
	return map[string]way{
		bareInsert:       {do: insert(shop.UniqueIndex, job.no), orders: true},
		doInsert:         {do: insert(shop.Belay, job.no), orders: true},
		onceInsert:       {do: answerOnce, orders: true},
		indexHalf:        {do: insert(shop.UniqueIndex, half), orders: true, repeats: true},
		doHalf:           {do: insert(shop.Belay, half), orders: true, repeats: true},
		doRepeat:         {do: insert(shop.Belay, old), orders: true, repeats: true},
		doRepeatRemember: {do: insert(shop.BelayMarked, old), orders: true, repeats: true},
		hotForUpdate:     {do: take(shop.ForUpdate), sells: true},
		hotAtomicUpdate:  {do: take(shop.AtomicUpdate), sells: true},
		hotDo:            {do: take(shop.Guarded), sells: true},
		hotDoFor:         {do: takeFor(), sells: true},
		hotDoCombined:    {do: take(shop.Combined), sells: true},
		hotForCombined:   {do: takeFor(guard.Combine()), sells: true},
		hotCASRetry:      {do: casRetry, sells: true},
		saleForUpdate:    {do: sell(shop.ForUpdate), sells: true, orders: true},
		saleDo:           {do: sell(shop.Guarded), sells: true, orders: true},
		saleDoCombined:   {do: sell(shop.Combined), sells: true, orders: true},
	}
}

// Cases returns those that list names, with commas between the names; the empty list
// names all. What is compared comes one right after the other.
func Cases(list string) ([]Case, error) {
	var all []Case
	known := ways()
	add := func(callers, processes int, names ...string) {
		for _, name := range names {
			all = append(all, Case{name, callers, processes, known[name]})
		}
	}
	for _, c := range []int{1, 64, 500} {
		add(c, 1, bareInsert, doInsert, onceInsert)
	}
	add(2000, 1, bareInsert, doInsert) // with a small pool: overload
	for _, c := range []int{64, 500} {
		add(c, 1, indexHalf, doHalf)
	}
	add(64, 1, doRepeat, doRepeatRemember)
	for _, at := range []caseKey{{callers: 1, processes: 1}, {callers: 4, processes: 1}, {callers: 16, processes: 1},
		{callers: 64, processes: 1}, {callers: 500, processes: 1}, {callers: 64, processes: 4}} {
		add(at.callers, at.processes, hotForUpdate, hotAtomicUpdate, hotDoCombined, hotDo)
		if at.callers >= 64 && at.processes == 1 {
			add(at.callers, at.processes, hotDoFor, hotForCombined, hotCASRetry)
		}
		add(at.callers, at.processes, saleForUpdate, saleDoCombined, saleDo)
	}
	return measure.Choose(list, all, func(c Case) string { return c.name })
}

// half has every second request repeat the one before it, at the same time.
func half(j job, n int64) string { return j.no(n / 2) }

// old repeats orders that are there.
func old(j job, n int64) string { return seededNo(j.Run, n%seeded) }

func insert(m shop.Method, no func(job, int64) string) func(context.Context, *shop.Service, job, int64) shop.Answer {
	return func(ctx context.Context, s *shop.Service, j job, n int64) shop.Answer {
		return s.Do(ctx, m, no(j, n), false)
	}
}

func take(w shop.Way) func(context.Context, *shop.Service, job, int64) shop.Answer {
	return func(ctx context.Context, s *shop.Service, j job, _ int64) shop.Answer {
		return s.Sell(ctx, w, j.Item, "")
	}
}

// takeFor is take for a request of its own.
func takeFor(opts ...guard.Option) func(context.Context, *shop.Service, job, int64) shop.Answer {
	return func(ctx context.Context, s *shop.Service, j job, n int64) shop.Answer {
		return s.SellFor(ctx, j.Item, j.no(n), opts...)
	}
}

// answerOnce inserts an order and stores an answer.
func answerOnce(ctx context.Context, s *shop.Service, j job, n int64) shop.Answer {
	return s.Once(ctx, j.no(n))
}

func sell(w shop.Way) func(context.Context, *shop.Service, job, int64) shop.Answer {
	return func(ctx context.Context, s *shop.Service, j job, n int64) shop.Answer {
		return s.Sell(ctx, w, j.Item, j.no(n))
	}
}

// casRetry tries again until it gets through, which is Done, or the time is up, which is
// Stale.
func casRetry(ctx context.Context, s *shop.Service, j job, _ int64) shop.Answer {
	for {
		answer := s.SellOnce(ctx, j.Item)
		if answer.Result != shop.Stale || time.Now().After(j.To) {
			return answer
		}
	}
}

// right reports whether an answer is one that the case is to get.
func (c Case) right(r shop.Result) bool {
	return r == shop.Done || c.repeats && (r == shop.Busy || r == shop.Duplicate)
}

// verify compares what the callers were told with what the database has.
func (c Case) verify(ctx context.Context, a *arena, j job, told int64) error {
	var sold, orders int64
	err := a.db.QueryRowContext(ctx, "SELECT ? - remaining FROM stocks WHERE id = ?", stocked, j.Item).Scan(&sold)
	if err == nil {
		err = a.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM orders WHERE no LIKE ?", j.prefix()+"%").Scan(&orders)
	}
	switch {
	case err != nil:
		return fmt.Errorf("count what was done: %w", err)
	case c.sells && sold != told, !c.sells && sold != 0, c.orders && orders != told, !c.orders && orders != 0:
		return fmt.Errorf("%d were told that it is done, but %d are sold and there are %d orders", told, sold, orders)
	}
	return nil
}
