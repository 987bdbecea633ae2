package redislock

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/isnil"
	"github.com/belaygo/belay/lock/lockengine"
)

// New returns an engine on the caller's client: for a cluster, a single server, or
// servers under Sentinel. The caller closes the client, after the engine. Such a client
// needs the options that the package documentation names to get through a failover.
func New(client redis.UniversalClient, cfg Config) (Engine, error) {
	if isnil.Value(client) {
		return nil, errors.New("redislock: client is nil")
	}
	if cfg.AskStart {
		return nil, errors.New("redislock: Config.AskStart works only with Open, not with New")
	}
	e, err := newEngine(client, cfg)
	if err != nil {
		return nil, err
	}
	return e, nil
}

func newEngine(client redis.UniversalClient, cfg Config) (*engine, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	topology := newTopology(client)
	id := uuid.NewString()
	e := &engine{
		id:       id,
		self:     id,
		client:   client,
		cfg:      cfg,
		sender:   passThrough{topology},
		topology: topology,
		waker:    newWaker(topology),
		metrics:  newMetrics(cfg.Name),
	}
	e.waker.leaveLine = e.leaveLine
	if !cfg.NoTracking && topology.cannotSubscribe == nil {
		e.tracker = newTracker(topology, cfg.Logger)
	}
	return e, nil
}

// Open returns an engine on a new client, which Close closes. It does not dial.
//
// The client is one for Sentinel if opts have a MasterName, for a cluster if they have
// several addresses or IsClusterMode, and else for a single server. From opts it takes
// addresses, credentials, TLS and pool sizes, but not MinIdleConns. It sets the options that matter
// in a failover: timeouts of at most a second that also end with the caller's context, one dial per
// attempt, no reads from replicas, and on a cluster a slot map that is reloaded each second and
// whenever a dial fails.
func Open(opts *redis.UniversalOptions, cfg Config) (Engine, error) {
	var asked *starts
	if cfg.AskStart && opts != nil {
		asked = new(starts)
		opts = asked.asking(opts)
	}
	client, err := newClient(opts)
	if err != nil {
		return nil, err
	}
	if _, cluster := client.(*redis.ClusterClient); asked != nil && (cluster || opts.MasterName != "") {
		_ = client.Close()
		return nil, errors.New("redislock: Config.AskStart works only with a single server, not with a cluster or Sentinel")
	}
	e, err := newEngine(client, cfg)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	e.starts = asked
	if c, ok := client.(*redis.ClusterClient); ok {
		c.OnNewNode(func(node *redis.Client) {
			node.AddHook(nodeHook{addr: node.Options().Addr, topology: e.topology})
		})
	}
	e.owned = true
	e.sender = newRouter(e.topology)
	return e, nil
}

// Ping implements lockengine.Pinger: it returns nil if Redis answers, and is of the kind that the
// client is for.
func (e *engine) Ping(ctx context.Context) error {
	if err := e.topology.explain(e.ping(ctx)); err != nil {
		return fmt.Errorf("ping redis: %w", err)
	}
	return nil
}

// Watch implements lockengine.Waker. It returns when the server has confirmed the
// subscription, or an error after a second.
func (e *engine) Watch(ctx context.Context, key string, wake func()) (stop func(), err error) {
	return e.waker.watch(ctx, e.lockName(key), wake)
}

// WatchLoss implements lockengine.LossWatcher by the tracking of client-side caching. It does
// nothing with Config.NoTracking, or if the server refuses to track keys.
func (e *engine) WatchLoss(r lockengine.Request, lost func()) (stop func()) {
	if e.tracker == nil {
		return func() {}
	}
	return e.tracker.watch(e.lockName(r.Key), r.Owner, lost)
}

// Locate implements lockengine.Locator. The node is not known before the client has its first
// slot map, which the first request loads.
func (e *engine) Locate(key string) lockengine.Place {
	return e.place(e.lockName(key), "")
}

// Close ends the engine's subscriptions, also those on a client that was passed to New,
// and closes the client that Open made. Close the Locker first. Close takes no longer
// than the client's timeouts. When ctx ends before that, Close returns ctx's error, and
// the rest ends in the background.
func (e *engine) Close(ctx context.Context) error {
	closed := make(chan error, 1)
	go func() { closed <- background.Do(nil, "redislock: close", e.close) }()
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *engine) close() error {
	e.waker.stop()
	if e.tracker != nil {
		e.tracker.stop()
	}
	if !e.owned {
		return nil
	}
	err := e.client.Close()
	e.topology.close()
	e.sender.close()
	return err
}
