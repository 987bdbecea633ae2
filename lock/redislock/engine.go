package redislock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock"
)

// Engine is a lock.Engine on Redis, a lock.Waker, a lock.Marker, a lock.Locator, a
// lock.Prober and a prometheus.Collector. It is safe for concurrent use.
type Engine struct {
	client   redis.UniversalClient
	owned    bool // Close closes client
	prefix   string
	replicas int
	name     string
	sender   sender
	bus      *bus
	waker    *waker
	sentinel *sentinel // nil unless client is under Sentinel
	metrics  *metrics
}

var (
	_ lock.Engine  = (*Engine)(nil)
	_ lock.Waker   = (*Engine)(nil)
	_ lock.Marker  = (*Engine)(nil)
	_ lock.Locator = (*Engine)(nil)
	_ lock.Prober  = (*Engine)(nil)
)

// New returns an engine on the caller's own client: of a cluster, of a single
// server, or of a set of servers under Sentinel. The client stays the caller's
// to close, after the engine. One that was not made by Open needs care to get
// through a failover; see the package documentation.
func New(client redis.UniversalClient, opts ...Option) (*Engine, error) {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("redislock: client is nil")
	}
	bus := newBus(client)
	e := &Engine{client: client, sender: through{bus}, bus: bus, name: "redis"}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("redislock: an option is nil")
		}
		if err := opt(e); err != nil {
			return nil, err
		}
	}
	e.waker = newWaker(bus)
	e.sentinel = watchSentinel(client)
	e.metrics = newMetrics(e.name)
	return e, nil
}

// Ping reports whether Redis answers.
func (e *Engine) Ping(ctx context.Context) error {
	if err := e.client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping redis: %w", err)
	}
	return nil
}

// Close ends what the engine runs by itself: its subscriptions, also those on a
// client that was passed to New, and, if Open made the client, the client.
// Close the Locker first. Close takes no longer than the client's timeouts.
func (e *Engine) Close() error {
	e.waker.stop()
	if !e.owned {
		return nil
	}
	err := e.client.Close()
	e.bus.close()
	e.sender.close()
	return err
}

// Watch implements lock.Waker. It returns when the subscription stands, after a
// second at most.
func (e *Engine) Watch(ctx context.Context, key string, wake func()) (stop func(), err error) {
	return e.waker.watch(ctx, e.lockName(key), wake)
}

// Node returns the address of the node that has the lock on key now, as far as
// is known, and "" otherwise. It asks nobody.
func (e *Engine) Node(key string) string { return e.node(e.lockName(key)) }

// Locate implements lock.Locator. The node is not known before the client has
// its first slot map, which the first request loads.
func (e *Engine) Locate(_ context.Context, key string) lock.Place {
	return e.place(e.lockName(key), "")
}

// lockName is the name of a key's lock in Redis.
func (e *Engine) lockName(key string) string { return e.prefix + key }

// place is where a lock is kept: at the node that answered, or, when that did not
// say its name, at the one that should have.
func (e *Engine) place(name, answered string) lock.Place {
	p := lock.Place{Node: answered, Slot: -1}
	if e.bus.shards {
		p.Slot = slot(name)
	}
	if p.Node == "" {
		p.Node = e.node(name)
	}
	if e.prefix != "" {
		p.Entry = name
	}
	return p
}

// node is the node that has a lock, empty if it is not known.
func (e *Engine) node(name string) string {
	if e.sentinel != nil {
		return e.sentinel.node()
	}
	return e.bus.known(name)
}

// holder is what a script returned about a lock. No time left means less than a
// millisecond; a negative one, that the lock does not expire or is not there.
func (e *Engine) holder(cmd *command, owner string, ms int64) lock.Holder {
	if ms == 0 {
		ms = 1
	}
	return lock.Holder{
		Owner: owner,
		TTL:   time.Duration(max(0, ms)) * time.Millisecond,
		Place: e.place(cmd.name, cmd.node),
	}
}
