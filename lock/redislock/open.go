package redislock

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Open returns an engine on a cluster client of its own, which Close closes. It
// does not dial. Of opts it takes addresses, credentials, TLS and pool sizes;
// what decides how a failover is survived is set by Open: timeouts of at most a
// second that also end with the caller's context, one dial per attempt, a slot
// map that is reloaded each second and whenever a dial fails, and no reads from
// replicas.
func Open(opts *redis.ClusterOptions, options ...Option) (*Engine, error) {
	switch {
	case opts == nil || len(opts.Addrs) == 0:
		return nil, errors.New("redislock: ClusterOptions.Addrs is empty")
	case slices.Contains(opts.Addrs, ""): // go-redis would take it for localhost
		return nil, errors.New("redislock: ClusterOptions.Addrs has an empty address")
	}
	client := redis.NewClusterClient(hardened(*opts))
	e, err := New(client, options...)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	client.OnNewNode(func(node *redis.Client) {
		node.AddHook(nodeHook{addr: node.Options().Addr, bus: e.bus})
	})
	e.owned = true
	e.sender = newRouter(e.bus)
	return e, nil
}

func hardened(o redis.ClusterOptions) *redis.ClusterOptions {
	o.DialTimeout = atMostSecond(o.DialTimeout)
	o.ReadTimeout = atMostSecond(o.ReadTimeout)
	o.WriteTimeout = atMostSecond(o.WriteTimeout)
	o.PoolTimeout = atMostSecond(o.PoolTimeout)
	o.ContextTimeoutEnabled = true
	o.DialerRetries = 1
	o.MaxRetries = -1
	o.MaxRedirects = max(o.MaxRedirects, 3) // or MOVED would not be followed
	o.ClusterStateReloadInterval = time.Second
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
	o.DisableRoutingPolicies = true
	o.Protocol = 2 // RESP3 looks for push messages around each command
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &o
}

func atMostSecond(d time.Duration) time.Duration {
	if d <= 0 || d > time.Second {
		return time.Second
	}
	return d
}

// nodeHook sits on the client of one node. It notes which node answers, and has
// the slot map reloaded when the node can't be reached: go-redis by itself goes
// on asking a dead master. Nor does it give up asking a silent one for the map.
type nodeHook struct {
	addr string
	bus  *bus
}

func (h nodeHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err != nil {
			h.bus.reload(ctx)
		}
		return conn, err
	}
}

func (h nodeHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "cluster" {
			return h.bus.looks.ask(ctx, h.addr, func(ctx context.Context) error { return next(ctx, cmd) })
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

func (h nodeHook) note(cmd redis.Cmder) {
	if c, ok := cmd.(*command); ok {
		c.node = h.addr
	}
}
