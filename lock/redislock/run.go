package redislock

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// run runs s on one lock.
func (e *Engine) run(ctx context.Context, s *script, c call) (*command, error) {
	cmd := s.evalsha(ctx, c)
	err := e.sender.send(ctx, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = s.eval(ctx, c)
		err = e.sender.send(ctx, cmd)
	}
	if err != nil {
		return cmd, s.wrap(err)
	}
	return cmd, nil
}

// runAll runs s on many locks in a pipeline. Each command that is returned
// carries its own error.
func (e *Engine) runAll(ctx context.Context, s *script, calls []call) []*command {
	cmds := make([]*command, len(calls))
	for i, c := range calls {
		cmds[i] = s.evalsha(ctx, c)
	}
	e.sender.sendAll(ctx, cmds)

	var again []*command
	for i, cmd := range cmds {
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			cmds[i] = s.eval(ctx, calls[i])
			again = append(again, cmds[i])
		}
	}
	e.sender.sendAll(ctx, again)
	return cmds
}
