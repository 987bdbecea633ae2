package main

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"
)

// runBursts lets all callers of a job try for one key at the same moment, and
// again for another key, until the span ends. One burst counts as one cycle.
func runBursts(l locker, j job) outcome {
	var total outcome
	for n := 0; time.Now().Before(j.to()); n++ {
		o, took := burst(l, j.Key+":"+strconv.Itoa(n), j.Callers)
		if end := time.Now(); end.Before(j.from()) || !end.Before(j.to()) {
			o.Cycles, took = 0, nil
		}
		total.add(o)
		total.took(took)
	}
	return total
}

// burst holds what was granted until every caller has its answer. It also returns
// how long each caller waited for that.
func burst(l locker, key string, callers int) (o outcome, latencies []time.Duration) {
	ctx := context.Background()
	var (
		ready, done sync.WaitGroup
		mu          sync.Mutex
		granted     []held
	)
	o.Cycles = 1
	start := make(chan struct{})
	ready.Add(callers)
	for range callers {
		done.Go(func() {
			ready.Done()
			<-start
			asked := time.Now()
			release, err := l.try(ctx, key)
			took := time.Since(asked)

			mu.Lock()
			defer mu.Unlock()
			latencies = append(latencies, took)
			switch {
			case err == nil:
				granted = append(granted, release)
			case !errors.Is(err, errHeld):
				o.fail(err)
			}
		})
	}
	ready.Wait()
	close(start)
	done.Wait()

	if len(granted) == 0 {
		o.fail(errors.New("nobody was granted a free lock"))
	}
	o.Broken = max(0, int64(len(granted))-1)
	for _, release := range granted {
		if err := release(); err != nil {
			o.fail(err)
		}
	}
	return o, latencies
}
