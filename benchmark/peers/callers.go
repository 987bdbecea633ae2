package main

import (
	"context"
	"strconv"
	"sync"
	"time"
)

// endGrace is how long after the span those who wait are sent away. Whoever was
// inside when the span ended has left by then.
const endGrace = 50 * time.Millisecond

// A caller acquires and releases again and again.
type caller struct {
	job     job
	locker  locker
	arena   *arena // nil: nobody else wants the key
	key     string
	number  int64
	outcome outcome
	took    []time.Duration // by each acquire
}

// runCallers lets all callers of a job run until its span ends.
func runCallers(l locker, j job) (outcome, error) {
	var shared *arena
	if j.Arena != "" {
		var err error
		if shared, err = openArena(j.Arena); err != nil {
			return outcome{}, err
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
		wg.Go(func() { c.run(ctx) })
	}
	wg.Wait()

	var total outcome
	for _, c := range callers {
		total.add(c.outcome)
		total.took(c.took)
	}
	return total, nil
}

func (c *caller) run(ctx context.Context) {
	for time.Now().Before(c.job.to()) {
		c.cycle(ctx)
	}
}

func (c *caller) cycle(ctx context.Context) {
	asked := time.Now()
	release, err := c.locker.acquire(ctx, c.key)
	granted := time.Now()
	if err != nil {
		if ctx.Err() == nil {
			c.outcome.fail(err)
			pause(ctx)
			return
		}
		c.note(granted, granted.Sub(asked)) // it would have waited at least that long
		return
	}
	c.note(granted, granted.Sub(asked))
	handOver := c.arena != nil && granted.Before(c.job.to()) && c.pass()

	if err := release(); err != nil && ctx.Err() == nil {
		c.outcome.fail(err)
		return
	}
	if c.counts(time.Now()) {
		c.outcome.Cycles++
		if handOver {
			c.outcome.HandOvers++
		}
	}
}

func (c *caller) pass() bool {
	c.outcome.Passed++
	return c.arena.pass(c.number)
}

// note records how long an acquire took. One that was given up at the end of
// the span counts too: leaving out those who wait longest would flatter.
func (c *caller) note(now time.Time, took time.Duration) {
	if !now.Before(c.job.from()) {
		c.took = append(c.took, took)
	}
}

func (c *caller) counts(now time.Time) bool {
	return !now.Before(c.job.from()) && now.Before(c.job.to())
}

// pause keeps a contender that fails from failing in a busy loop.
func pause(ctx context.Context) {
	timer := time.NewTimer(time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
