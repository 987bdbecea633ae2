package redislock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// directMax is how many requests to one node go each on a connection of its
// own. When there are more, they go together: that costs a single one some
// time, and saves much of it for all.
const directMax = 8

// A masterNode is one master: of a cluster, the one that Sentinel names at the time, or a
// single server.
type masterNode struct {
	client   *redis.Client
	addr     func() string
	breaker  *breaker
	batches  *batcher
	inFlight atomic.Int64
	used     atomic.Int64 // when it was used last, in ns since epoch
}

func newMasterNode(client *redis.Client, t *topology) *masterNode {
	addr := func() string { return t.addrOf(client) }
	return &masterNode{client: client, addr: addr, breaker: newBreaker(addr, t.reload), batches: &batcher{client: client}}
}

func (n *masterNode) send(ctx context.Context, cmd *command) error {
	return n.underBreaker(ctx, func() error {
		defer n.inFlight.Add(-1)
		if n.inFlight.Add(1) > directMax {
			return n.batches.send(ctx, cmd)
		}
		return cmd.sendVia(ctx, n.client)
	})
}

// underBreaker runs request unless the breaker is open.
func (n *masterNode) underBreaker(ctx context.Context, request func() error) error {
	start := time.Now()
	n.use(start)
	return n.breaker.run(ctx, start, request)
}

func (n *masterNode) sendAll(ctx context.Context, cmds []*command) {
	sent := false
	err := n.underBreaker(ctx, func() error {
		sent = true
		return pipeline(ctx, n.client.Pipeline(), cmds)
	})
	if !sent {
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
	}
}

func (n *masterNode) use(now time.Time) { n.used.Store(int64(now.Sub(epoch))) }
