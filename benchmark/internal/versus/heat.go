package versus

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/shop"
)

// stocked is how many a heat may sell.
const stocked = 1_000_000_000

// A heat is one measurement, with order numbers and an item of its own.
type heat struct {
	arena    *arena
	item     int64
	from, to time.Time // what ends between them counts
}

func (h heat) prefix() string          { return fmt.Sprintf("%s-%d-", h.arena.prefix, h.item) }
func (h heat) no(n int64) string       { return fmt.Sprintf("%s%09d", h.prefix(), n) }
func (h heat) within(t time.Time) bool { return !t.Before(h.from) && t.Before(h.to) }

// A caller asks again and again, and notes what he got.
type caller struct {
	took  []time.Duration
	late  []time.Duration // at least, of requests that were under way when the time was up
	asked int64           // warming up included, as is done
	done  int64
	errs  int64
	err   error // the first
}

// run has the callers of c ask until the time is up, and compares what they were
// told with what the database says.
func (h heat) run(ctx context.Context, c contest, warm, span time.Duration) (Figures, error) {
	stock := shop.PlainStock{ID: h.item, Name: c.name, Remaining: stocked, Version: 1}
	if err := h.arena.plain.WithContext(ctx).Create(&stock).Error; err != nil {
		return Figures{}, fmt.Errorf("stock an item: %w", err)
	}
	runtime.GC() // what the one before has left behind
	callers := make([]caller, c.callers)
	grown, err := h.arena.meter.Growth(ctx, func() error {
		h.from = time.Now().Add(warm)
		h.to = h.from.Add(span)
		h.crowd(ctx, c, callers)
		return ctx.Err()
	})
	if err != nil {
		return Figures{}, err
	}

	var all caller
	for _, w := range callers {
		all.took = append(all.took, w.took...)
		all.late = append(all.late, w.late...)
		all.asked += w.asked
		all.done += w.done
		all.errs += w.errs
		if all.err == nil {
			all.err = w.err
		}
	}
	switch counted, err := c.counted(ctx, h); {
	case err != nil:
		return Figures{}, fmt.Errorf("count what was done: %w", err)
	case counted != all.done:
		return Figures{}, fmt.Errorf("%d were told that it is done, but it is done %d times", all.done, counted)
	}
	asked := float64(max(1, all.asked))
	var waited measure.Histogram
	for _, took := range slices.Concat(all.took, all.late) {
		waited.Add(took)
	}
	return Figures{
		Case: c.name, C: c.callers, Ops: float64(len(all.took)) / span.Seconds(),
		P50: waited.Quantile(0.5).Microseconds(), P99: waited.Quantile(0.99).Microseconds(),
		Errors: all.errs, err: all.err,
		commands: grown["redis_commands"] / asked, statements: grown["Questions"] / asked, micros: grown["cpu_self"] / asked,
	}, nil
}

func (h heat) crowd(ctx context.Context, c contest, callers []caller) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for ctx.Err() == nil && time.Now().Before(h.to) {
				callers[i].ask(ctx, h, c.deed, next.Add(1)-1)
			}
		})
	}
	wg.Wait()
}

func (w *caller) ask(ctx context.Context, h heat, d deed, n int64) {
	start := time.Now()
	done, err := d(ctx, h, n)
	end := time.Now()
	w.asked++
	if done {
		w.done++
	}
	switch {
	case errors.Is(err, shop.ErrConflict): // the time was up
		w.late = append(w.late, end.Sub(start))
	case err != nil:
		w.errs++
		if w.err == nil {
			w.err = err
		}
	case h.within(end):
		w.took = append(w.took, end.Sub(start))
	case !end.Before(h.to): // to leave out those who wait longest would flatter
		w.late = append(w.late, end.Sub(start))
	}
}
