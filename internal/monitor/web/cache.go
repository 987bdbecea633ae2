package web

import (
	"context"
	"sync"
	"time"
)

// cache keeps what is dear to find out for a while, for all pages. Whoever comes
// while it is being found out waits for it.
type cache[T any] struct {
	mu    sync.Mutex
	value T
	err   error
	at    time.Time
}

func (c *cache[T]) get(ctx context.Context, keep time.Duration, find func(context.Context) (T, error)) (T, time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() || time.Since(c.at) >= keep {
		// One who goes away must not spoil it for the others.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		c.value, c.err = find(ctx)
		c.at = time.Now()
	}
	return c.value, c.at, c.err
}

func (c *cache[T]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = time.Time{}
}
