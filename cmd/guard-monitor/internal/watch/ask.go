package watch

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// ask sends all queries of a round to one node. clustered says that it is in a Redis
// Cluster. was is the node after the last round, nil if there was none.
func ask(ctx context.Context, c *redis.Client, clustered bool, was *Node) look {
	began := time.Now()
	l := questions(ctx, c, clustered)
	l.at = time.Now()
	l.took = l.at.Sub(began)
	if l.err == nil && was != nil && l.tells(was) {
		l.clients = askClients(ctx, c, l.number("connected_clients"))
	}
	l.refused, l.denied = errors.Is(l.err, syscall.ECONNREFUSED), forbidden(l.err)
	return l
}

// forbidden reports whether a server rejected guard-monitor or one of its queries.
func forbidden(err error) bool {
	return redis.IsAuthError(err) || redis.IsPermissionError(err)
}

func questions(ctx context.Context, c *redis.Client, clustered bool) look {
	if clustered {
		return askMember(ctx, c)
	}
	var info, calls *redis.StringCmd
	_, _ = c.Pipelined(ctx, func(p redis.Pipeliner) error {
		info, calls = askInfo(ctx, p)
		return nil
	})
	if err := info.Err(); err != nil {
		return look{err: fmt.Errorf("INFO: %w", err)}
	}
	l := look{info: parseInfo(info.Val() + calls.Val())}
	if l.info["redis_mode"] == "cluster" {
		return askMember(ctx, c)
	}
	return l
}

// askInfo reads the usual sections, and how often each command was called, which a
// server may not report. Redis before 7.0 takes one section at a time.
func askInfo(ctx context.Context, p redis.Pipeliner) (info, calls *redis.StringCmd) {
	return p.Info(ctx), p.Info(ctx, "commandstats")
}

// askMember reads the view first: a node that is a master in its own view has begun
// a history of its own in INFO.
func askMember(ctx context.Context, c *redis.Client) look {
	var nodes, state, info, calls *redis.StringCmd
	_, _ = c.Pipelined(ctx, func(p redis.Pipeliner) error {
		nodes = p.ClusterNodes(ctx)
		state = p.ClusterInfo(ctx)
		info, calls = askInfo(ctx, p)
		return nil
	})
	// Without a view no failover is seen. A node that loads its data has none yet.
	if err := nodes.Err(); err != nil && !redis.IsLoadingError(err) {
		return look{err: fmt.Errorf("CLUSTER NODES: %w", err)}
	}
	if err := info.Err(); err != nil {
		return look{err: fmt.Errorf("INFO: %w", err)}
	}
	view := parseNodes(nodes.Val())
	if err := useNames(ctx, c, view); err != nil {
		return look{err: fmt.Errorf("CLUSTER SLOTS: %w", err)}
	}
	return look{
		info:   parseInfo(info.Val() + calls.Val()),
		view:   view,
		serves: state.Err() != nil || parseInfo(state.Val())["cluster_state"] == "ok",
	}
}
