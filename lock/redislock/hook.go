package redislock

import (
	"context"
	"net"

	"github.com/redis/go-redis/v9"
)

// nodeHook is a hook on the client of one node. It notes which node answers, and
// reloads the slot map when the node cannot be reached: go-redis keeps dialling a dead
// master. It also bounds the reading of the map from a silent node, which go-redis does
// not.
type nodeHook struct {
	addr     string
	topology *topology
}

func (h nodeHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err != nil {
			h.topology.reload(ctx)
		}
		return conn, err
	}
}

func (h nodeHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "cluster" {
			return h.topology.reads.query(ctx, h.addr, func(ctx context.Context) error { return next(ctx, cmd) })
		}
		h.note(cmd)
		return next(ctx, cmd)
	}
}

func (h nodeHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			h.note(cmd)
		}
		return next(ctx, cmds)
	}
}

// note notes that a command goes to the node. It clears the error of the node before, which has
// redirected it, say: go-redis leaves that on a command if this node does not answer the command
// before it in the pipeline.
func (h nodeHook) note(cmd redis.Cmder) {
	if c, ok := cmd.(*command); ok {
		c.node = h.addr
		c.SetErr(nil)
	}
}
