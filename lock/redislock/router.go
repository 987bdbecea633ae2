package redislock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/lock/lockengine"
)

// A router sends each script to the master that has its lock, bypassing any cluster
// client, so that a slow node delays no other.
type router struct {
	topology *topology

	mu     sync.RWMutex
	closed bool
	nodes  map[*redis.Client]*masterNode
}

func newRouter(t *topology) *router {
	return &router{topology: t, nodes: make(map[*redis.Client]*masterNode)}
}

// send retries a question once when its connection broke before the answer: it may have
// been an old connection, to a node that has restarted. A retry after another failure
// would fail, too.
func (r *router) send(ctx context.Context, cmd *command) error {
	err := r.sendOnce(ctx, cmd)
	if cmd.script.question() && broken(err) && ctx.Err() == nil {
		cmd.SetErr(nil)
		err = r.sendOnce(ctx, cmd)
	}
	return err
}

func (r *router) sendOnce(ctx context.Context, cmd *command) error {
	n, err := r.node(ctx, cmd.name)
	if err != nil {
		return err
	}
	if err := n.send(ctx, cmd); !r.redirected(ctx, err) {
		return err
	}
	return cmd.sendVia(ctx, r.topology.cluster) // which follows redirects
}

// redirected reports whether another node of the cluster has to execute the command.
func (r *router) redirected(ctx context.Context, err error) bool {
	switch {
	case err == nil, r.topology.cluster == nil:
		return false
	case redis.HasErrorPrefix(err, "MOVED"), redis.HasErrorPrefix(err, "READONLY"):
		r.topology.reload(ctx)
		return true
	}
	return redis.HasErrorPrefix(err, "ASK")
}

// node returns the master for a lock.
func (r *router) node(ctx context.Context, name string) (*masterNode, error) {
	client, err := r.topology.master(ctx, name)
	if err != nil {
		return nil, err
	}
	r.mu.RLock()
	n := r.nodes[client]
	r.mu.RUnlock()
	if n != nil {
		return n, nil
	}
	return r.addNode(client)
}

// keepNode is how long a node that is not used any more is remembered.
const keepNode = time.Minute

// addNode adds a node. It forgets nodes that have left the cluster.
func (r *router) addNode(client *redis.Client) (*masterNode, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	if n := r.nodes[client]; n != nil {
		return n, nil
	}
	now := time.Now()
	fresh := newMasterNode(client, r.topology)
	for c, n := range r.nodes {
		if n.addr() == fresh.addr() || now.Sub(epoch)-time.Duration(n.used.Load()) > keepNode {
			delete(r.nodes, c)
		}
	}
	fresh.use(now)
	r.nodes[client] = fresh
	return fresh, nil
}

func (r *router) on(ctx context.Context, name string, request func(*redis.Client) error) error {
	n, err := r.node(ctx, name)
	if err != nil {
		return err
	}
	return n.underBreaker(ctx, func() error { return request(n.client) })
}

func (r *router) sendAll(ctx context.Context, cmds []*command) {
	parts := make(map[*masterNode][]*command)
	for _, cmd := range cmds {
		n, err := r.node(ctx, cmd.name)
		if err != nil {
			cmd.SetErr(err)
			continue
		}
		parts[n] = append(parts[n], cmd)
	}
	var wg sync.WaitGroup
	for n, part := range parts {
		wg.Go(func() {
			err := background.Do(nil, "redislock: send requests", func() error {
				n.sendAll(ctx, part)
				return nil
			})
			for _, cmd := range part {
				if err != nil && cmd.Err() == nil {
					cmd.SetErr(fmt.Errorf("%w: %w", lockengine.ErrNoAnswer, err))
				}
			}
		})
	}
	wg.Wait()

	var moved []*command
	for _, cmd := range cmds {
		if r.redirected(ctx, cmd.Err()) {
			moved = append(moved, cmd)
		}
	}
	if len(moved) > 0 {
		_ = pipeline(ctx, r.topology.cluster.Pipeline(), moved)
	}
}

// all returns the nodes in use.
func (r *router) all() []*masterNode {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Collect(maps.Values(r.nodes))
}

// close rejects new requests, and waits until none is on its way.
func (r *router) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	for _, n := range r.all() {
		n.batches.close()
	}
}
