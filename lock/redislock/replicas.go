package redislock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock/lockengine"
)

// replicaTime bounds the wait for replicas.
const replicaTime = 500 * time.Millisecond

// runReplicated sends cmd and waits for replicas. It returns few if fewer than
// Config.Replicas have confirmed cmd's writes.
func (e *engine) runReplicated(ctx context.Context, cmd *command) (few, err error) {
	wait, err := e.runAndWait(ctx, cmd)
	if lineRefused(cmd, err) {
		refusal := err
		wait, err = e.runAndWait(ctx, cmd)
		err = e.executed(err, refusal)
	}
	if err != nil {
		return nil, cmd.script.wrap(e.topology.explain(err))
	}
	acks, err := wait.Int64()
	switch {
	case err != nil: // its text only: cmd was executed, whatever the outcome of WAIT
		few = fmt.Errorf("redislock: %s: wait for replicas: %s", cmd.script.name, err.Error())
	case acks < int64(e.cfg.Replicas):
		few = fmt.Errorf("redislock: %s: %d of %d replicas have it", cmd.script.name, acks, e.cfg.Replicas)
	}
	return few, nil
}

// undoUnreplicated releases a lock that too few replicas have.
func (e *engine) undoUnreplicated(ctx context.Context, r lockengine.Request, few error) error {
	if err := e.undoAcquire(ctx, r); err != nil {
		return fmt.Errorf("%w: %w", few, err)
	}
	return fmt.Errorf("%w: %w", lockengine.ErrRefused, few)
}

// runAndWait sends cmd and then WAIT on one connection, because WAIT covers only that
// connection's writes. The error is that of cmd.
func (e *engine) runAndWait(ctx context.Context, cmd *command) (wait *redis.Cmd, err error) {
	cmd.prepare(ctx, false)
	err = e.sender.on(ctx, cmd.name, func(node *redis.Client) (err error) {
		wait, err = e.exchange(ctx, node, cmd, false)
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			cmd.prepare(ctx, true)
			wait, err = e.exchange(ctx, node, cmd, false)
		}
		return err
	})
	if addr, ok := askedOf(err); ok && e.topology.cluster != nil { // the slot migrates
		cmd.prepare(ctx, true)
		node, lookup := e.topology.at(ctx, addr)
		if lookup != nil {
			return nil, lookup
		}
		wait, err = e.exchange(ctx, node, cmd, true)
	}
	if redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "READONLY") {
		e.topology.reload(ctx)
	}
	return wait, err
}

// exchange sends cmd and WAIT to node. It returns WAIT and the error of cmd.
func (e *engine) exchange(ctx context.Context, node *redis.Client, cmd *command, asking bool) (*redis.Cmd, error) {
	pipe := node.Pipeline()
	if asking {
		pipe.Do(ctx, "asking")
	}
	cmd.enqueue(ctx, pipe)
	wait := pipe.Do(ctx, "wait", e.cfg.Replicas, waitTime(ctx, node).Milliseconds())
	_ = exec(ctx, pipe, []*command{cmd})
	if err := cmd.Err(); err != nil {
		return nil, err
	}
	cmd.node = e.topology.addrOf(node)
	return wait, nil
}

// waitTime is replicaTime, or less if the client or ctx would end before. It is
// at least a millisecond: 0 would be for ever.
func waitTime(ctx context.Context, node *redis.Client) time.Duration {
	d := replicaTime
	if read := node.Options().ReadTimeout; read > 0 {
		d = min(d, read/2)
	}
	if deadline, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(deadline)/2)
	}
	return max(d, time.Millisecond)
}

// askedOf returns the node that an ASK names.
func askedOf(err error) (addr string, ok bool) {
	if !redis.HasErrorPrefix(err, "ASK") {
		return "", false
	}
	fields := strings.Fields(err.Error())
	return fields[len(fields)-1], true
}
