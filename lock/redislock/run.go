package redislock

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// run sends cmd and waits for its answer.
func (e *engine) run(ctx context.Context, cmd *command) error {
	err := e.execute(ctx, cmd)
	if lineRefused(cmd, err) {
		err = e.executed(e.execute(ctx, cmd), err)
	}
	e.topology.unserved.heed(cmd.name, err)
	return cmd.script.wrap(e.topology.explain(err))
}

// execute sends cmd by its hash, and by its source if the node does not know that.
func (e *engine) execute(ctx context.Context, cmd *command) error {
	cmd.prepare(ctx, false)
	err := e.sender.send(ctx, cmd)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") { // it allocates for no error, too
		cmd.prepare(ctx, true)
		err = e.sender.send(ctx, cmd)
	}
	return err
}

// runAll sends cmds in a pipeline. Each carries its own error.
func (e *engine) runAll(ctx context.Context, cmds []*command) {
	for _, cmd := range cmds {
		cmd.prepare(ctx, false)
	}
	e.sender.sendAll(ctx, cmds)

	var again []*command
	for _, cmd := range cmds {
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			cmd.prepare(ctx, true)
			again = append(again, cmd)
		}
	}
	e.sender.sendAll(ctx, again)
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil {
			e.topology.unserved.heed(cmd.name, err)
			cmd.SetErr(e.topology.explain(err))
		}
	}
}
