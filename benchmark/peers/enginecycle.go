package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// cycleAll has callers acquire and release for a span, after a tenth of it that does not
// count.
func cycleAll(ctx context.Context, o *opened, callers int, prefix string, span time.Duration) engineResult {
	from := time.Now().Add(span / 10)
	to := from.Add(span)
	var cycles, failed atomic.Int64
	var failure atomic.Pointer[error]
	var mu sync.Mutex
	var took measure.Histogram
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			key, owner := fmt.Sprint(prefix, ":", i), fmt.Sprint("me:", i)
			var mine measure.Histogram
			for ctx.Err() == nil {
				start := time.Now()
				err := o.cycle(ctx, key, owner)
				end := time.Now()
				if end.After(to) {
					break
				}
				switch {
				case err != nil:
					failed.Add(1)
					failure.CompareAndSwap(nil, &err)
				case end.After(from):
					cycles.Add(1)
					mine.Add(end.Sub(start))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			took.Merge(&mine)
		})
	}
	wg.Wait()
	micros := func(q float64) float64 { return float64(took.Quantile(q)) / float64(time.Microsecond) }
	r := engineResult{Callers: callers, CyclesPerSecond: float64(cycles.Load()) / span.Seconds(), P50: micros(0.5), P99: micros(0.99), Errors: failed.Load()}
	if err := failure.Load(); err != nil {
		r.failure = *err
	}
	return r
}
