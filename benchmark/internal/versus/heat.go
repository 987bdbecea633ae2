package versus

import (
	"context"
	"fmt"
	"runtime"
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

// A caller sends request after request, and notes the answers.
type caller struct {
	took  []time.Duration
	late  []time.Duration // at least, of requests that were under way when the time was up
	asked int64           // warming up included, as is done
	done  int64
	errs  int64
	err   string // the first
}

// run has the callers of c send requests until the time is up, and compares the
// answers with what the database has.
func (h heat) run(ctx context.Context, c Case, warm, span time.Duration) (f Figures, err error) {
	_, err = h.arena.db.ExecContext(ctx, "INSERT INTO stocks (id, name, remaining, version) VALUES (?, ?, ?, 1)", h.item, c.name, stocked)
	if err != nil {
		return f, fmt.Errorf("stock an item: %w", err)
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
		return f, err
	}

	f = Figures{Case: c.name, C: c.callers}
	var asked, done, inTime int64
	var waited measure.Histogram
	for _, w := range callers {
		inTime += int64(len(w.took))
		for _, took := range append(w.took, w.late...) {
			waited.Add(took)
		}
		asked += w.asked
		done += w.done
		f.Errors += w.errs
		if f.err == "" {
			f.err = w.err
		}
	}
	switch counted, err := c.counted(ctx, h); {
	case err != nil:
		return f, fmt.Errorf("count what was done: %w", err)
	case counted != done:
		return f, fmt.Errorf("%d were told that it is done, but it is done %d times", done, counted)
	}
	f.Ops = float64(inTime) / span.Seconds()
	f.P50, f.P99 = waited.Quantile(0.5).Microseconds(), waited.Quantile(0.99).Microseconds()
	each := float64(max(1, asked))
	f.commands, f.statements, f.micros = grown["redis_commands"]/each, grown["Questions"]/each, grown["cpu_self"]/each
	return f, nil
}

func (h heat) crowd(ctx context.Context, c Case, callers []caller) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for ctx.Err() == nil && time.Now().Before(h.to) {
				start, n := time.Now(), next.Add(1)-1
				answer := c.do(ctx, h, n)
				callers[i].note(h, c, answer, start, time.Now())
			}
		})
	}
	wg.Wait()
}

func (w *caller) note(h heat, c Case, answer shop.Answer, start, end time.Time) {
	w.asked++
	if answer.Result == shop.Done {
		w.done++
	}
	switch {
	case answer.Result == shop.Stale && c.name == casRetry: // the time was up
		w.late = append(w.late, end.Sub(start))
	case !c.right(answer.Result):
		w.errs++
		if w.err == "" {
			w.err = fmt.Sprintf("%s %s", answer.Result, answer.Error)
		}
	case h.within(end):
		w.took = append(w.took, end.Sub(start))
	case !end.Before(h.to): // without the longest waits, the figures would flatter
		w.late = append(w.late, end.Sub(start))
	}
}
