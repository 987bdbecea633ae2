package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"github.com/belaygo/belay/lock/lockengine"
)

// A topology knows the servers: which node has a lock, and where its release is
// published. On a cluster since Redis 7 a message stays on the lock's shard. Before
// that it goes to all nodes, so that one connection receives all of them, as on a
// single server.
type topology struct {
	client          redis.UniversalClient
	cluster         *redis.ClusterClient // nil if client is not for a cluster
	shards          bool                 // it is a real cluster, which may know SPUBLISH
	before7         atomic.Bool          // but it is older than Redis 7
	sentinel        *sentinel            // nil unless client is under Sentinel
	cannotSubscribe error                // why no subscription is possible
	mapped          atomic.Bool          // client has a slot map
	reads           slotMapReads
	unserved        unserved
	ctx             context.Context // ends with close
	stop            context.CancelFunc
}

func newTopology(client redis.UniversalClient) *topology {
	t := &topology{client: client, sentinel: watchSentinel(client)}
	t.ctx, t.stop = context.WithCancel(context.Background())
	switch c := client.(type) {
	case *redis.ClusterClient:
		// A client with its own ClusterSlots is for servers that are no cluster: the
		// client's way to Sentinel.
		t.cluster, t.shards = c, c.Options().ClusterSlots == nil
	case *redis.Client:
	default:
		t.cannotSubscribe = fmt.Errorf("redislock: can't subscribe through a %T", client)
	}
	return t
}

// publish is the command that publishes the release of a lock.
func (t *topology) publish() any {
	if t.shards {
		return "spublish" // release.lua falls back to publish
	}
	return "publish"
}

func (t *topology) sharded() bool { return t.shards && !t.before7.Load() }

// node returns the node to listen to for a lock, nil if there is only one
// connection.
func (t *topology) node(ctx context.Context, name string) (*redis.Client, error) {
	if t.cluster == nil || t.shards && !t.sharded() {
		return nil, nil
	}
	return t.find(ctx, name)
}

// find returns the node of the cluster that has a lock. It calls the cluster only while
// there is no slot map.
func (t *topology) find(ctx context.Context, name string) (*redis.Client, error) {
	node, err := t.cluster.MasterForKey(ctx, name)
	if err == nil && !t.mapped.Load() {
		t.mapped.Store(true)
	}
	return node, err
}

// master returns the node that has a lock.
func (t *topology) master(ctx context.Context, name string) (*redis.Client, error) {
	switch c := t.client.(type) {
	case *redis.ClusterClient:
		node, err := t.find(ctx, name)
		switch {
		case err == nil:
			return node, nil
		case denied(err):
			return nil, fmt.Errorf("%w: find the node: %w", lockengine.ErrDenied, err)
		}
		return nil, fmt.Errorf("%w: find the node: %w", lockengine.ErrNotSent, err) // the cluster is not known yet
	case *redis.Client:
		return c, nil
	}
	return nil, fmt.Errorf("redislock: can't find the master through a %T", t.client)
}

// known returns the address of the node that has a lock, empty if that takes a request, or if no node
// serves its slot.
func (t *topology) known(name string) string {
	if t.cluster != nil && !t.mapped.Load() || t.unserved.has(name) {
		return ""
	}
	node, err := t.master(context.Background(), name)
	if err != nil {
		return ""
	}
	return t.addrOf(node)
}

// addrOf returns the address of a node. Under Sentinel it changes.
func (t *topology) addrOf(node *redis.Client) string {
	if t.sentinel != nil {
		return t.sentinel.node()
	}
	return node.Options().Addr
}

// at returns the master at addr.
func (t *topology) at(ctx context.Context, addr string) (*redis.Client, error) {
	var found atomic.Pointer[redis.Client]
	err := t.cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		if node.Options().Addr == addr {
			found.Store(node)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: find node %s: %w", lockengine.ErrNotSent, addr, err)
	case found.Load() == nil:
		return nil, fmt.Errorf("%w: node %s is none of the masters", lockengine.ErrNotSent, addr)
	}
	return found.Load(), nil
}

// open returns a connection to node that is subscribed to nothing yet. It does
// not dial.
func (t *topology) open(ctx context.Context, node *redis.Client) *redis.PubSub {
	if node == nil {
		return t.client.Subscribe(ctx)
	}
	return node.Subscribe(ctx)
}

// reload makes the client reload the slot map.
func (t *topology) reload(ctx context.Context) {
	if t.cluster != nil {
		t.cluster.ReloadState(ctx)
	}
}

const (
	queryTime  = 100 * time.Millisecond // for one node to answer with the slot map
	querySlack = 8                      // silent nodes after which the time grows by queryTime
)

// slotMapReads is the state of reading a cluster's slot map, by the engine's own
// client.
type slotMapReads struct {
	flight singleflight.Group
	ended  time.Time // when the last read ended; guarded by flight, as is loaded
	loaded bool      // whether the last read got an answer

	answers atomic.Int64 // of nodes
	silent  atomic.Int64 // how many nodes in a row gave no answer
}

// query reads the slot map from the node at addr. It waits briefly, because the client
// then reads from the next node; longer if many did not answer, as the network may be
// slow.
func (r *slotMapReads) query(ctx context.Context, addr string, question func(context.Context) error) error {
	short, cancel := context.WithTimeout(ctx, queryTime*time.Duration(1+r.silent.Load()/querySlack))
	defer cancel()
	start := time.Now()
	err := question(short)
	network, ok := errors.AsType[net.Error](err)
	switch {
	case err == nil:
		r.answers.Add(1)
		if time.Since(start) < queryTime { // else the next one needs as long
			r.silent.Store(0)
		}
	case ok && network.Timeout() && ctx.Err() == nil:
		r.silent.Add(1)
		return fmt.Errorf("node %s: %w", addr, errSilent)
	}
	return err
}
