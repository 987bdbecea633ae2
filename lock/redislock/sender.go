package redislock

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// A sender gets scripts to where they run.
type sender interface {
	// send sends cmd and waits for its answer, which cmd carries. When ctx ends
	// first, cmd may still be on its way and must not be touched again.
	send(ctx context.Context, cmd *command) error
	// sendAll sends many commands and waits for their answers. Each carries its own
	// error.
	sendAll(ctx context.Context, cmds []*command)
	// on runs request, which is sent alone, on the master for a lock.
	on(ctx context.Context, name string, request func(*redis.Client) error) error
	// close waits for the sender's goroutines. The engine has closed its own client
	// before.
	close()
}

// passThrough sends by the user's client.
type passThrough struct{ topology *topology }

func (t passThrough) send(ctx context.Context, cmd *command) error {
	err := t.reloadIfUndialled(ctx, cmd.sendVia(ctx, t.topology.client))
	if cmd.hasMarker() {
		err = t.unclear(err)
	}
	if err == nil { // the command found its node in a slot map
		t.topology.mapped.Store(true)
	}
	return err
}

func (t passThrough) sendAll(ctx context.Context, cmds []*command) {
	_ = t.reloadIfUndialled(ctx, pipeline(ctx, t.topology.client.Pipeline(), cmds))
	for _, cmd := range cmds {
		cmd.SetErr(t.unclear(cmd.Err()))
	}
}

// unclear returns the error of a command that was sent in a pipeline. A client of a cluster follows
// redirects, and may leave one on the command when the other node gives no answer. So a redirect does
// not say that nothing was executed.
func (t passThrough) unclear(err error) error {
	if err != nil && t.topology.cluster != nil && (redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK")) {
		return fmt.Errorf("redirected, and then maybe not answered: %s", err.Error())
	}
	return err
}

// reloadIfUndialled reloads the slot map after a dial that failed: go-redis keeps
// dialling a dead master.
func (t passThrough) reloadIfUndialled(ctx context.Context, err error) error {
	if undialled(err) {
		t.topology.reload(ctx)
	}
	return err
}

func (t passThrough) on(ctx context.Context, name string, request func(*redis.Client) error) error {
	node, err := t.topology.master(ctx, name)
	if err != nil {
		return err
	}
	return request(node)
}

func (t passThrough) close() {}
