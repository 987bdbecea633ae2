package redislock

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/wait"
)

const (
	reloadTime  = 300 * time.Millisecond // bounds a reload of the slot map
	reloadPause = 100 * time.Millisecond // from its end to the next
)

// refresh reloads the slot map, once for all callers that wait for it, and waits until
// ctx ends.
func (t *topology) refresh(ctx context.Context) {
	if t.cluster == nil {
		return
	}
	select {
	case <-t.reads.flight.DoChan("", t.reloadOnce):
	case <-ctx.Done():
	}
}

// reloadOnce reloads the slot map. It does nothing soon after the last success, and
// waits a little after a failure: while a node is away, requests do not query the
// others for the map again and again.
func (t *topology) reloadOnce() (any, error) {
	r := &t.reads
	past := time.Since(r.ended)
	if r.loaded && past < reloadPause || wait.Sleep(t.ctx, reloadPause-past, nil) != nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(t.ctx, reloadTime)
	defer cancel()
	answers := r.answers.Load()
	// ForEachMaster reloads the map before it visits any node, or else visits those of
	// the old map.
	_ = t.cluster.ForEachMaster(ctx, func(context.Context, *redis.Client) error { return nil })
	r.ended, r.loaded = time.Now(), r.answers.Load() != answers
	return nil, nil
}

// close ends refreshing and waits for the reload that is under way. The client has
// been closed, so that the reload waits for no node.
func (t *topology) close() {
	t.stop()
	if t.cluster != nil {
		_, _, _ = t.reads.flight.Do("", t.reloadOnce)
	}
}
