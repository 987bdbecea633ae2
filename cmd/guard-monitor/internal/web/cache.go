package web

import (
	"context"
	"sync"
	"time"
)

// cache keeps what is slow to find, for all pages: for so long that finding it takes
// a small share of the time. A failure is kept for as long as it took, so that half
// of the time is left for others. Callers that come meanwhile wait for it.
type cache[T any] struct {
	mu    sync.Mutex
	value T
	err   error
	at    time.Time
	took  time.Duration
}

const (
	storeTimeout = 5 * time.Second // for what a page or a route reads
	share        = 20              // one part in so many
	leastFailure = time.Second
)

func (c *cache[T]) get(ctx context.Context, find func(context.Context) (T, error)) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keep := share * c.took
	if c.err != nil {
		keep = max(c.took, leastFailure)
	}
	if c.at.IsZero() || time.Since(c.at) >= keep {
		began := time.Now()
		// The end of one request must not fail the others.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		c.value, c.err = find(ctx)
		c.at = time.Now()
		c.took = c.at.Sub(began)
	}
	return c.value, c.err
}

// caches are caches by name, at most maxCaches: names come from readers.
type caches[T any] struct {
	mu  sync.Mutex
	all map[string]*cache[T]
}

const maxCaches = 64

func (c *caches[T]) of(name string) *cache[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.all[name]
	if one == nil {
		if len(c.all) >= maxCaches || c.all == nil {
			c.all = make(map[string]*cache[T])
		}
		one = new(cache[T])
		c.all[name] = one
	}
	return one
}
