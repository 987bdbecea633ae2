package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock"
)

// Engine is a lock.Engine on Redis. It is safe for concurrent use.
type Engine struct {
	client  redis.UniversalClient
	owned   bool   // Close closes client
	publish string // the command that wakes waiters
}

var _ lock.Engine = (*Engine)(nil)

// New returns an engine on the caller's own client, which stays his to close.
// A client that was not made by Open needs care to get through a failover; see
// the package documentation.
func New(client redis.UniversalClient) (*Engine, error) {
	if client == nil {
		return nil, errors.New("redislock: client is nil")
	}
	e := &Engine{client: client, publish: "publish"}
	if _, ok := client.(*redis.ClusterClient); ok {
		e.publish = "spublish"
	}
	return e, nil
}

// Ping reports whether Redis answers.
func (e *Engine) Ping(ctx context.Context) error {
	if err := e.client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping redis: %w", err)
	}
	return nil
}

// Close closes the client if Open made it.
func (e *Engine) Close() error {
	if !e.owned {
		return nil
	}
	return e.client.Close()
}

// Acquire implements lock.Engine.
func (e *Engine) Acquire(ctx context.Context, h lock.Hold, ttl time.Duration) (lock.Grant, error) {
	cmd, err := e.run(ctx, acquire, h.Key, h.Owner, ttl.Milliseconds())
	if err != nil {
		return lock.Grant{}, err
	}
	reply, err := cmd.Slice()
	if err != nil || len(reply) != 3 {
		return lock.Grant{}, badReply(acquire, cmd)
	}
	if reply[0] == int64(0) {
		owner, okOwner := reply[1].(string)
		ms, okMS := reply[2].(int64)
		if !okOwner || !okMS {
			return lock.Grant{}, badReply(acquire, cmd)
		}
		return lock.Grant{}, &lock.HeldError{Key: h.Key, Holder: e.holder(cmd, h.Key, owner, ms)}
	}
	sec, okSec := reply[1].(int64)
	usec, okUsec := reply[2].(int64)
	if reply[0] != int64(1) || !okSec || !okUsec {
		return lock.Grant{}, badReply(acquire, cmd)
	}
	return lock.Grant{Token: (sec*1e6 + usec) * 1024, Place: e.place(cmd, h.Key)}, nil
}

// Renew implements lock.Engine.
func (e *Engine) Renew(ctx context.Context, hs []lock.Hold, ttl time.Duration) []error {
	calls := make([]call, len(hs))
	for i, h := range hs {
		calls[i] = call{h.Key, []any{h.Owner, ttl.Milliseconds()}}
	}
	errs := make([]error, len(hs))
	for i, cmd := range e.runAll(ctx, renew, calls) {
		errs[i] = verdict(renew, cmd)
	}
	return errs
}

// Release implements lock.Engine.
func (e *Engine) Release(ctx context.Context, h lock.Hold) error {
	cmd, err := e.run(ctx, release, h.Key, h.Owner, channel(h.Key), e.publish)
	if err != nil {
		return err
	}
	return verdict(release, cmd)
}

// Inspect implements lock.Engine.
func (e *Engine) Inspect(ctx context.Context, key string) (lock.Holder, error) {
	cmd, err := e.run(ctx, inspect, key)
	if err != nil {
		return lock.Holder{}, err
	}
	reply, err := cmd.Slice()
	if err != nil || len(reply) != 2 {
		return lock.Holder{}, badReply(inspect, cmd)
	}
	owner, _ := reply[0].(string) // nil when nobody holds it
	ms, ok := reply[1].(int64)
	if !ok {
		return lock.Holder{}, badReply(inspect, cmd)
	}
	return e.holder(cmd, key, owner, ms), nil
}

// verdict reads the reply of a script that returns 1 for done and 0 for not
// held.
func verdict(s *script, cmd *command) error {
	if err := cmd.Err(); err != nil {
		return s.failed(err)
	}
	switch cmd.Val() {
	case int64(1):
		return nil
	case int64(0):
		return lock.ErrNotHeld
	}
	return badReply(s, cmd)
}

func badReply(s *script, cmd *command) error {
	return fmt.Errorf("redislock: unexpected reply %v to %s", cmd.Val(), s.name)
}

// channel is where Redisson clients listen for the release of a lock.
func channel(name string) string { return "redisson_lock__channel:{" + name + "}" }

func (e *Engine) holder(cmd *command, key, owner string, ms int64) lock.Holder {
	return lock.Holder{
		Owner: owner,
		TTL:   time.Duration(max(0, ms)) * time.Millisecond,
		Place: e.place(cmd, key),
	}
}

// place tells which node answered cmd, and the slot of key.
func (e *Engine) place(cmd *command, key string) lock.Place {
	switch c := e.client.(type) {
	case *redis.ClusterClient:
		p := lock.Place{Node: cmd.node, Slot: slot(key)}
		if p.Node == "" { // not a client of ours: the node that should have answered
			if node, err := c.MasterForKey(context.Background(), key); err == nil {
				p.Node = node.Options().Addr
			}
		}
		return p
	case *redis.Client:
		return lock.Place{Node: c.Options().Addr, Slot: -1}
	}
	return lock.Place{Node: cmd.node, Slot: -1}
}
