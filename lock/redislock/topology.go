package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"github.com/belaygo/belay/lock"
)

// A bus is how the release of a lock is told. On a cluster since Redis 7 a
// message stays on the lock's shard. Before that it goes to all nodes, so that
// one connection hears all of them, as on a single server.
type bus struct {
	client  redis.UniversalClient
	cluster *redis.ClusterClient // nil if client is none
	shards  bool                 // it is a real cluster, which may know SPUBLISH
	old     atomic.Bool          // but it is older than Redis 7
	unable  error                // why nobody can listen
	mapped  atomic.Bool          // client has a slot map
	looks   looks
	ctx     context.Context // ends with close
	stop    context.CancelFunc
}

func newBus(client redis.UniversalClient) *bus {
	b := &bus{client: client}
	b.ctx, b.stop = context.WithCancel(context.Background())
	switch c := client.(type) {
	case *redis.ClusterClient:
		// With slots of its own making it is a set of servers that are no
		// cluster: the client's way to Sentinel.
		b.cluster, b.shards = c, c.Options().ClusterSlots == nil
	case *redis.Client:
	default:
		b.unable = fmt.Errorf("redislock: can't subscribe through a %T", client)
	}
	return b
}

// publish is the command that tells the release of a lock.
func (b *bus) publish() string {
	if b.shards {
		return "spublish" // release.lua falls back to publish
	}
	return "publish"
}

func (b *bus) sharded() bool { return b.shards && !b.old.Load() }

// channel is where Redisson clients listen for the release of a lock.
func channel(name string) string { return "redisson_lock__channel:{" + name + "}" }

// prepare makes sure that node does not block.
func (b *bus) prepare(ctx context.Context) error {
	if b.cluster == nil {
		return nil
	}
	_, err := b.find(ctx, "")
	return err
}

// node returns the node to listen to for a lock, nil if there is only one
// connection.
func (b *bus) node(ctx context.Context, name string) (*redis.Client, error) {
	if b.cluster == nil || b.shards && b.old.Load() {
		return nil, nil
	}
	return b.find(ctx, name)
}

// find returns the node of the cluster that has a lock. It asks the cluster only
// as long as there is no slot map.
func (b *bus) find(ctx context.Context, name string) (*redis.Client, error) {
	node, err := b.cluster.MasterForKey(ctx, name)
	if err == nil && !b.mapped.Load() {
		b.mapped.Store(true)
	}
	return node, err
}

// master returns the node that has a lock.
func (b *bus) master(ctx context.Context, name string) (*redis.Client, error) {
	switch c := b.client.(type) {
	case *redis.ClusterClient:
		node, err := b.find(ctx, name)
		switch {
		case err == nil:
			return node, nil
		case denied(err):
			return nil, fmt.Errorf("%w: find the node: %w", lock.ErrDenied, err)
		}
		return nil, fmt.Errorf("%w: find the node: %w", lock.ErrNotSent, err) // the cluster is not known yet
	case *redis.Client:
		return c, nil
	}
	return nil, fmt.Errorf("redislock: can't tell the master through a %T", b.client)
}

// known returns the address of the node that has a lock, empty if somebody would
// have to be asked.
func (b *bus) known(name string) string {
	if b.cluster != nil && !b.mapped.Load() {
		return ""
	}
	node, err := b.master(context.Background(), name)
	if err != nil {
		return ""
	}
	return node.Options().Addr
}

// at returns the master at addr.
func (b *bus) at(ctx context.Context, addr string) (*redis.Client, error) {
	var mu sync.Mutex
	var found *redis.Client
	err := b.cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		if node.Options().Addr == addr {
			found = node
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: find node %s: %w", lock.ErrNotSent, addr, err)
	case found == nil:
		return nil, fmt.Errorf("%w: node %s is none of the masters", lock.ErrNotSent, addr)
	}
	return found, nil
}

// open returns a connection to node that is subscribed to nothing yet. It does
// not dial.
func (b *bus) open(ctx context.Context, node *redis.Client) *redis.PubSub {
	if node == nil {
		return b.client.Subscribe(ctx)
	}
	return node.Subscribe(ctx)
}

// reload has the slot map reloaded.
func (b *bus) reload(ctx context.Context) {
	if b.cluster != nil {
		b.cluster.ReloadState(ctx)
	}
}

const (
	askTime  = 100 * time.Millisecond // for one node to tell the slot map
	askSlack = 8                      // after so many that did not, as long again
)

// looks are the looks at the slot map of a cluster, by a client of our own.
type looks struct {
	flight singleflight.Group
	ended  time.Time // the last one; guarded by flight, as is loaded
	loaded bool      // there was an answer

	answers atomic.Int64 // of nodes
	silent  atomic.Int64 // how many nodes in a row gave none
}

// ask asks the node at addr for the slot map. It does not wait for long, as the
// client then asks the next one; unless many said nothing: the network may be
// slow.
func (l *looks) ask(ctx context.Context, addr string, question func(context.Context) error) error {
	short, cancel := context.WithTimeout(ctx, askTime*time.Duration(1+l.silent.Load()/askSlack))
	defer cancel()
	start := time.Now()
	err := question(short)
	network, ok := errors.AsType[net.Error](err)
	switch {
	case err == nil:
		l.answers.Add(1)
		if time.Since(start) < askTime { // else the next one needs as long
			l.silent.Store(0)
		}
	case ok && network.Timeout() && ctx.Err() == nil:
		l.silent.Add(1)
		return fmt.Errorf("node %s: %w", addr, errSilent)
	}
	return err
}
