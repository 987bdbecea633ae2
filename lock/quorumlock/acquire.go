package quorumlock

import (
	"context"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock/lockengine"
)

// Acquire implements lockengine.Engine. It calls all nodes at once, and returns as soon as a majority
// has granted the lock, or another owner has it at a majority.
//
// When several processes acquire a free lock at once, it may happen that none of them gets a
// majority. Then the process that has the first node goes on, for up to Config.NodeTimeout, while
// the others release what they have.
func (e *engine) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	timeout, err := e.cfg.timeoutOf(ttl)
	if err != nil {
		return lockengine.Grant{}, err
	}
	if err := e.enter(ctx); err != nil {
		return lockengine.Grant{}, fmt.Errorf("quorumlock: acquire: %w", err)
	}
	defer e.running.Done()
	e.ttl.Store(int64(ttl))
	r.Waits = false // each node would offer the lock to another waiter
	b := newBallot(e, r, ttl, timeout)
	defer b.close()
	start := time.Now()
	b.ask(ctx, b.unasked)
	b.collect(ctx)
	for pause := time.Since(start); b.leads() && time.Since(start) < timeout; pause *= 2 {
		if wait.Sleep(ctx, min(pause, timeout/8), nil) != nil {
			break
		}
		b.ask(ctx, b.heldByAnother)
		b.collect(ctx)
	}
	if b.won() {
		return lockengine.Grant{Token: b.token(), Place: e.place()}, nil
	}
	return lockengine.Grant{}, b.concede(ctx)
}

// acquireAt acquires a lock at one node, and returns its vote.
func (e *engine) acquireAt(ctx context.Context, node int, r lockengine.Request, ttl, timeout time.Duration) vote {
	ctx, cancel := within(ctx, timeout)
	defer cancel()
	sent := time.Now()
	var grant lockengine.Grant
	err := call("acquire", func() (err error) {
		grant, err = e.nodes[node].Acquire(ctx, r, ttl)
		if err == nil {
			err = e.mayVote(node, sent, ttl)
		}
		return err
	})
	return newVote(node, grant.Token, err)
}
