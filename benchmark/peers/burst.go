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
func runBursts(l locker, j job) (total outcome) {
	for n := 0; time.Now().Before(j.to()); n++ {
		o := burst(l, j.Key+":"+strconv.Itoa(n), j.Callers)
		if !j.counts(time.Now()) {
			o.Cycles, o.took = 0, nil
		}
		total.add(o)
	}
	return total
}

// burst holds what was granted until every caller has its answer.
func burst(l locker, key string, callers int) (o outcome) {
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
			release, err := l.acquire(ctx, key, false)
			took := time.Since(asked)

			mu.Lock()
			defer mu.Unlock()
			o.took = append(o.took, took)
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
	return o
}
