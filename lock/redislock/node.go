package redislock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// directMax is how many requests to one node have a connection each. Further ones are
// sent together, which delays a single one a little and saves much time in all.
const directMax = 8

// A masterNode is a cluster master, the current Sentinel master, or a single server.
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
