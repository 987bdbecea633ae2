package redislock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/belaygo/belay/lock"
)

// New returns an engine on the caller's own client: of a cluster, of a single server, or
// of a set of servers under Sentinel. The caller closes the client, after the engine.
// Such a client needs the options that the package documentation names to get through a
// failover.
func New(client redis.UniversalClient, cfg Config) (*Engine, error) {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("redislock: client is nil")
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	topology := newTopology(client)
	e := &Engine{
		id:       uuid.NewString(),
		client:   client,
		cfg:      cfg,
		sender:   passThrough{topology},
		topology: topology,
		waker:    newWaker(topology),
		metrics:  newMetrics(cfg.Name),
	}
	e.waker.leaveLine = e.leaveLine
	return e, nil
}

// Open returns an engine on a cluster client of its own, which Close closes. It does not
// dial. From opts it takes addresses, credentials, TLS and pool sizes. It sets what
// decides how a failover is survived: timeouts of at most a second that also end with the
// caller's context, one dial per attempt, a slot map that is reloaded each second and
// whenever a dial fails, and no reads from replicas.
func Open(opts *redis.ClusterOptions, cfg Config) (*Engine, error) {
	switch {
	case opts == nil || len(opts.Addrs) == 0:
		return nil, errors.New("redislock: ClusterOptions.Addrs is empty")
	case slices.Contains(opts.Addrs, ""): // go-redis would take it for localhost
		return nil, errors.New("redislock: ClusterOptions.Addrs has an empty address")
	}
	client := redis.NewClusterClient(hardened(*opts))
	e, err := New(client, cfg)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	client.OnNewNode(func(node *redis.Client) {
		node.AddHook(nodeHook{addr: node.Options().Addr, topology: e.topology})
	})
	e.owned = true
	e.sender = newRouter(e.topology)
	return e, nil
}

func hardened(o redis.ClusterOptions) *redis.ClusterOptions {
	o.DialTimeout = atMostSecond(o.DialTimeout)
	o.ReadTimeout = atMostSecond(o.ReadTimeout)
	o.WriteTimeout = atMostSecond(o.WriteTimeout)
	o.PoolTimeout = atMostSecond(o.PoolTimeout)
	o.ContextTimeoutEnabled = true
	o.DialerRetries = 1
	o.MaxRetries = -1
	o.MaxRedirects = max(o.MaxRedirects, 3) // or MOVED would not be followed
	o.ClusterStateReloadInterval = time.Second
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
	o.DisableRoutingPolicies = true
	o.Protocol = 2 // RESP3 looks for push messages around each command
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &o
}

func atMostSecond(d time.Duration) time.Duration {
	if d <= 0 || d > time.Second {
		return time.Second
	}
	return d
}

var (
	_ lock.Engine  = (*Engine)(nil)
	_ lock.Waker   = (*Engine)(nil)
	_ lock.Locator = (*Engine)(nil)
	_ lock.Pinger  = (*Engine)(nil)
)

// Ping implements lock.Pinger: it returns nil if Redis answers.
func (e *Engine) Ping(ctx context.Context) error {
	if err := e.client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping redis: %w", err)
	}
	return nil
}

// Watch implements lock.Waker. It returns when the server has confirmed the
// subscription, or an error after a second.
func (e *Engine) Watch(ctx context.Context, key string, wake func()) (stop func(), err error) {
	return e.waker.watch(ctx, e.lockName(key), wake)
}

// Locate implements lock.Locator. The node is not known before the client has its first
// slot map, which the first request loads.
func (e *Engine) Locate(key string) lock.Place {
	return e.place(e.lockName(key), "")
}

// Close ends the engine's subscriptions, also those on a client that was passed to New,
// and closes the client that Open made. Close the Locker first. Close takes no longer
// than the client's timeouts. When ctx ends before that, Close returns ctx's error, and
// the rest ends in the background.
func (e *Engine) Close(ctx context.Context) error {
	closed := make(chan error, 1)
	go func() { closed <- e.close() }()
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Engine) close() error {
	e.waker.stop()
	if !e.owned {
		return nil
	}
	err := e.client.Close()
	e.topology.close()
	e.sender.close()
	return err
}
