package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock"
)

// markName is the key of a lock's marker, in the slot of the lock.
func markName(name string) string { return "belay_done:{" + name + "}" }

// AcquireUnlessMarked implements lock.Marker. The marker is looked at after the
// acquire, on the same connection: it was set before the release that made way
// for a grant, so no grant misses it. What was taken in vain is released again.
func (e *Engine) AcquireUnlessMarked(ctx context.Context, h lock.Hold, ttl time.Duration) (lock.Grant, error) {
	return e.persistAcquire(ctx, h, ttl, true)
}

// ReleaseMarked implements lock.Marker.
func (e *Engine) ReleaseMarked(ctx context.Context, h lock.Hold, keep time.Duration) error {
	err := e.release(ctx, h, max(keep, time.Millisecond))
	e.metrics.count(release, err)
	return err
}

// attend adds what call c wants to know or set.
func (c *command) attend(ctx context.Context, call call) {
	key := markName(call.name)
	if call.mark > 0 {
		c.mark = redis.NewStatusCmd(ctx, "set", key, "1", "px", call.mark.Milliseconds())
	}
	if call.look {
		c.look = redis.NewStringCmd(ctx, "get", key)
	}
}

// marked reports whether the lock is known to be marked.
func (c *command) marked() bool { return c.look != nil && c.look.Err() == nil }

// enqueue adds the command to pipe, with what goes with it.
func (c *command) enqueue(ctx context.Context, pipe redis.Pipeliner) {
	if c.mark != nil {
		_ = pipe.Process(ctx, c.mark)
	}
	_ = pipe.Process(ctx, c)
	if c.look != nil {
		_ = pipe.Process(ctx, c.look)
	}
}

// via sends the command through client. Only its own error counts.
func (c *command) via(ctx context.Context, client interface {
	Process(context.Context, redis.Cmder) error
	Pipeline() redis.Pipeliner
}) error {
	if c.mark == nil && c.look == nil {
		return client.Process(ctx, c)
	}
	_ = pipeline(ctx, client.Pipeline(), []*command{c})
	return c.Err()
}

// undo releases a lock that was granted, but must not be used.
func (e *Engine) undo(ctx context.Context, h lock.Hold) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := e.release(ctx, h, 0); err != nil && !errors.Is(err, lock.ErrNotHeld) {
		// Its text only: whatever became of the release, the acquire was executed.
		return fmt.Errorf("%w: release it again: %s", lock.ErrNoAnswer, err.Error())
	}
	return nil
}
