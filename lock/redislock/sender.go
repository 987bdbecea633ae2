package redislock

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// A sender gets scripts to where they run.
type sender interface {
	// send sends cmd and waits for its answer, which cmd carries. When ctx ends
	// first, cmd may still be on its way and must not be touched again.
	send(ctx context.Context, cmd *command) error
	// sendAll does so with many. Each carries its own error.
	sendAll(ctx context.Context, cmds []*command)
	// on runs request, which is sent by itself, on the master for a lock.
	on(ctx context.Context, name string, request func(*redis.Client) error) error
	// close waits for what the sender runs by itself. The client has been
	// closed, if that is ours to do.
	close()
}

// through sends by a client as it is.
type through struct{ bus *bus }

func (t through) send(ctx context.Context, cmd *command) error {
	err := t.noted(ctx, cmd.via(ctx, t.bus.client))
	if err == nil { // it was in a slot map that the command found its node
		t.bus.mapped.Store(true)
	}
	return err
}

func (t through) sendAll(ctx context.Context, cmds []*command) {
	_ = t.noted(ctx, pipeline(ctx, t.bus.client.Pipeline(), cmds))
}

// noted has the slot map reloaded after a dial that failed: go-redis by itself
// goes on asking a dead master.
func (t through) noted(ctx context.Context, err error) error {
	if undialled(err) {
		t.bus.reload(ctx)
	}
	return err
}

func (t through) on(ctx context.Context, name string, request func(*redis.Client) error) error {
	node, err := t.bus.master(ctx, name)
	if err != nil {
		return err
	}
	return request(node)
}

func (t through) close() {}
