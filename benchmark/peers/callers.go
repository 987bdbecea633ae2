package main

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/wait"
)

// endGrace is how long after the span callers that wait are canceled. A caller that was
// inside when the span ended has left by then.
const endGrace = 50 * time.Millisecond

// A caller acquires and releases again and again.
type caller struct {
	job     job
	locker  locker
	arena   *arena // nil: each caller has a key of its own
	key     string
	number  int64
	outcome outcome
}

// runCallers lets all callers of a job run until its span ends.
func runCallers(l locker, j job) (total outcome, err error) {
	var shared *arena
	if j.Arena != "" {
		if shared, err = openArena(j.Arena); err != nil {
			return total, err
		}
		defer shared.close()
	}
	// No deadline: some would shorten their lease to it.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	timer := time.AfterFunc(time.Until(j.to().Add(endGrace)), cancel)
	defer timer.Stop()

	callers := make([]*caller, j.Callers)
	var wg sync.WaitGroup
	for i := range callers {
		c := &caller{job: j, locker: l, arena: shared, key: j.Key, number: int64(j.First + i)}
		if j.Workload == ownKey {
			c.key += ":" + strconv.Itoa(j.First+i)
		}
		callers[i] = c
		wg.Go(func() {
			for time.Now().Before(j.to()) {
				c.cycle(ctx)
			}
		})
	}
	wg.Wait()
	for _, c := range callers {
		total.add(c.outcome)
	}
	return total, nil
}

func (c *caller) cycle(ctx context.Context) {
	asked := time.Now()
	release, err := c.locker.acquire(ctx, c.key, true)
	granted := time.Now()
	if err != nil && ctx.Err() == nil {
		c.outcome.fail(err)
		_ = wait.Sleep(ctx, time.Millisecond, nil) // else it would fail in a busy loop
		return
	}
	// One that was given up at the end of the span counts, too: it would have waited
	// at least that long, and without the longest waits the figures would flatter.
	if !granted.Before(c.job.from()) {
		c.outcome.took = append(c.outcome.took, granted.Sub(asked))
	}
	if err != nil {
		return
	}
	var handOver bool
	if c.arena != nil && granted.Before(c.job.to()) {
		c.outcome.Passed++
		handOver = c.arena.pass(c.number)
	}
	if err := release(); err != nil && ctx.Err() == nil {
		c.outcome.fail(err)
		return
	}
	if c.job.counts(time.Now()) {
		c.outcome.Cycles++
		if handOver {
			c.outcome.HandOvers++
		}
	}
}
