package redislock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock"
)

// replicaTime bounds the wait for replicas.
const replicaTime = 500 * time.Millisecond

// runReplicated runs s and waits for replicas. Few says that fewer than
// Config.Replicas have what s wrote.
func (e *Engine) runReplicated(ctx context.Context, s *script, c call) (cmd *command, few, err error) {
	cmd, wait, err := e.runAndWait(ctx, s, c)
	if err != nil {
		return cmd, nil, s.wrap(err)
	}
	acks, err := wait.Int64()
	switch {
	case err != nil: // its text only: s was executed, whatever became of WAIT
		few = fmt.Errorf("redislock: %s: wait for replicas: %s", s.name, err.Error())
	case acks < int64(e.cfg.Replicas):
		few = fmt.Errorf("redislock: %s: %d of %d replicas have it", s.name, acks, e.cfg.Replicas)
	}
	return cmd, few, nil
}

// undoUnreplicated releases a lock that too few replicas have.
func (e *Engine) undoUnreplicated(ctx context.Context, h lock.Hold, few error) error {
	if err := e.undoAcquire(ctx, h); err != nil {
		return fmt.Errorf("%w: %w", few, err)
	}
	return fmt.Errorf("%w: %w", lock.ErrRefused, few)
}

// runAndWait runs s and then WAIT on the same connection: it speaks only of
// what came before it there. The error is that of s.
func (e *Engine) runAndWait(ctx context.Context, s *script, c call) (*command, *redis.Cmd, error) {
	var wait *redis.Cmd
	cmd := s.evalsha(ctx, c)
	err := e.sender.on(ctx, c.name, func(node *redis.Client) (err error) {
		wait, err = e.exchange(ctx, node, cmd, false)
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			cmd = s.eval(ctx, c)
			wait, err = e.exchange(ctx, node, cmd, false)
		}
		return err
	})
	if addr, ok := askedOf(err); ok { // the slot migrates
		cmd = s.eval(ctx, c)
		node, lookup := e.topology.at(ctx, addr)
		if lookup != nil {
			return cmd, nil, lookup
		}
		wait, err = e.exchange(ctx, node, cmd, true)
	}
	if redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "READONLY") {
		e.topology.reload(ctx)
	}
	return cmd, wait, err
}

// exchange sends cmd and WAIT to node. It returns WAIT and the error of cmd.
func (e *Engine) exchange(ctx context.Context, node *redis.Client, cmd *command, asking bool) (*redis.Cmd, error) {
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
	cmd.node = node.Options().Addr
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
