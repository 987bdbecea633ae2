package quorumlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// pingKey is the key that a node which is no lockengine.Pinger is asked to inspect.
const pingKey = "quorumlock:ping"

// Ping implements lockengine.Pinger: it returns nil if a majority of nodes answers.
func (e *engine) Ping(ctx context.Context) error {
	return e.ping(ctx, "ping", func(ctx context.Context, node int) error {
		if p, ok := e.nodes[node].(lockengine.Pinger); ok {
			return p.Ping(ctx)
		}
		_, err := e.nodes[node].Inspect(ctx, pingKey)
		return err
	})
}

// Probe implements lockengine.Pinger: it returns nil if a majority of nodes could grant a lock of the
// last ttl now, and their votes would count.
func (e *engine) Probe(ctx context.Context, key string) error {
	return e.ping(ctx, "probe", func(ctx context.Context, node int) error {
		sent := time.Now()
		p, ok := e.nodes[node].(lockengine.Pinger)
		if !ok {
			_, err := e.nodes[node].Inspect(ctx, key)
			return err
		}
		if err := p.Probe(ctx, key); err != nil {
			return err
		}
		if err := e.mayVote(node, sent, time.Duration(e.ttl.Load())); err != nil {
			return fmt.Errorf("%w: %w", lockengine.ErrRefused, err)
		}
		return nil
	})
}

// ping calls all nodes, and returns nil when a majority has answered without an error.
func (e *engine) ping(ctx context.Context, what string, ping func(ctx context.Context, node int) error) error {
	if err := e.enter(ctx); err != nil {
		return fmt.Errorf("quorumlock: %s: %w", what, err)
	}
	defer e.running.Done()
	type answer struct {
		node int
		err  error
	}
	answers := ask(ctx, e, e.cfg.timeout(), func(ctx context.Context, node int) answer {
		return answer{node, call(what, func() error { return ping(ctx, node) })}
	})
	errs := slices.Repeat([]error{errSilent}, len(e.nodes))
	well := 0
	for range e.nodes {
		select {
		case a := <-answers:
			errs[a.node] = a.err
			if a.err == nil {
				well++
			}
		case <-ctx.Done():
			return failure(ctx, what, lockengine.ErrNoAnswer, errs)
		}
		if well >= e.majority {
			return nil
		}
	}
	return failure(ctx, what, unanswered(errs), errs)
}
