package quorumlock_test

import (
	"context"
	"sync"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

// A node is a memlock whose calls a test can change.
type node struct {
	lockengine.Engine
	mu      sync.Mutex
	acquire func(next func() (lockengine.Grant, error)) (lockengine.Grant, error) // nil = as it is
	renew   func(next func() []error) []error
	release func(next func() error) error
	started time.Time
}

// newNodes returns five, and the same as engines.
func newNodes() (nodes []*node, engines []lockengine.Engine) {
	for range 5 {
		n := &node{Engine: memlock.New()}
		nodes, engines = append(nodes, n), append(engines, n)
	}
	return nodes, engines
}

func (n *node) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	n.mu.Lock()
	call := n.acquire
	n.mu.Unlock()
	next := func() (lockengine.Grant, error) { return n.Engine.Acquire(context.WithoutCancel(ctx), r, ttl) }
	if call == nil {
		return next()
	}
	return call(next)
}

func (n *node) Renew(ctx context.Context, rs []lockengine.Request, ttl time.Duration) []error {
	next := func() []error { return n.Engine.Renew(ctx, rs, ttl) }
	if n.renew == nil {
		return next()
	}
	return n.renew(next)
}

func (n *node) Release(ctx context.Context, r lockengine.Request) error {
	next := func() error { return n.Engine.Release(ctx, r) }
	if n.release == nil {
		return next()
	}
	return n.release(next)
}

func (n *node) Started() (time.Time, error) { return n.started, nil }

// onAcquire changes what happens at the next acquires.
func (n *node) onAcquire(call func(next func() (lockengine.Grant, error)) (lockengine.Grant, error)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.acquire = call
}

// fails makes acquires fail without being executed.
func (n *node) fails(err error) {
	n.onAcquire(func(func() (lockengine.Grant, error)) (lockengine.Grant, error) { return lockengine.Grant{}, err })
}

// hangs makes acquires wait until the test goes on.
func (n *node) hangs(until <-chan struct{}) {
	n.onAcquire(func(next func() (lockengine.Grant, error)) (lockengine.Grant, error) {
		<-until
		return next()
	})
}

// give grants a lock of the node to an owner.
func (n *node) give(owner string) {
	if _, err := n.Engine.Acquire(context.Background(), lockengine.Request{Key: mine.Key, Owner: owner}, ttl); err != nil {
		panic(err)
	}
}

func (n *node) take(owner string) {
	if err := n.Engine.Release(context.Background(), lockengine.Request{Key: mine.Key, Owner: owner}); err != nil {
		panic(err)
	}
}

func (n *node) owner() string {
	h, err := n.Inspect(context.Background(), mine.Key)
	if err != nil {
		panic(err)
	}
	return h.Owner
}

// owners are who has the key, by node.
func owners(nodes []*node) (all []string) {
	for _, n := range nodes {
		all = append(all, n.owner())
	}
	return all
}
