package redislock

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	lookTime = 300 * time.Millisecond // bounds a look at the slot map
	lookPast = 100 * time.Millisecond // from its end to the next
)

// refresh has the slot map reloaded, once for all who ask meanwhile, and waits
// for it until ctx ends.
func (b *bus) refresh(ctx context.Context) {
	select {
	case <-b.looks.flight.DoChan("", b.look):
	case <-ctx.Done():
	}
}

// look has the slot map reloaded. What was learnt just now will do, and after a
// look in vain it waits a little: while a node is away, the others are not asked
// by each request.
func (b *bus) look() (any, error) {
	l := &b.looks
	past := time.Since(l.ended)
	if l.loaded && past < lookPast || !rest(b.ctx, lookPast-past) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(b.ctx, lookTime)
	defer cancel()
	answers := l.answers.Load()
	// It reloads the map before it visits anybody, or else visits by the old one.
	_ = b.cluster.ForEachMaster(ctx, func(context.Context, *redis.Client) error { return nil })
	l.ended, l.loaded = time.Now(), l.answers.Load() != answers
	return nil, nil
}

// close ends looking and waits for the look that is under way. The client has
// been closed, so that it waits for nobody.
func (b *bus) close() {
	b.stop()
	_, _, _ = b.looks.flight.Do("", b.look)
}
