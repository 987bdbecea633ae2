package quorumlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

const (
	// watchTime is how long a node has to begin to notify.
	watchTime = time.Second
	// gatherTime is how long a waiter waits for a majority of messages about one release.
	gatherTime = 5 * time.Millisecond
)

// errNoWaker is returned when too few nodes can notify.
var errNoWaker = errors.New("quorumlock: watch: fewer than a majority of the nodes can notify of releases")

// Watch implements lockengine.Waker. It returns when a majority of nodes will notify of releases. It
// calls wake when a majority has notified of a release, or 5 milliseconds after the first node
// has.
func (e *engine) Watch(ctx context.Context, key string, wake func()) (stop func(), err error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.running.Done()
	b := &bell{wake: wake, majority: e.majority, seen: make([]bool, len(e.nodes))}
	answers := ask(ctx, e, watchTime, func(ctx context.Context, node int) error {
		return call("watch", func() error { return b.watch(ctx, e.nodes[node], node, key) })
	})
	ready, failed := 0, 0
	for ready < e.majority {
		select {
		case err := <-answers:
			if err == nil {
				ready++
			} else if failed++; failed >= e.majority {
				b.stop()
				return nil, fmt.Errorf("%w: %w", errNoWaker, err)
			}
		case <-ctx.Done():
			b.stop()
			return nil, ctx.Err()
		}
	}
	return b.stop, nil
}

// A bell wakes one waiter.
type bell struct {
	wake     func()
	majority int

	mu      sync.Mutex
	stops   []func()
	stopped bool
	seen    []bool // which nodes have notified in this round
	n       int    // how many nodes these are; 0 = no round
	rung    bool   // whether the waiter was woken in this round
	round   int
	timer   *time.Timer // ends the round
}

// watch begins to watch a key at a node.
func (b *bell) watch(ctx context.Context, engine lockengine.Engine, node int, key string) error {
	waker, ok := engine.(lockengine.Waker)
	if !ok {
		return fmt.Errorf("a %T is no lockengine.Waker", engine)
	}
	stop, err := waker.Watch(ctx, key, func() { b.notify(node) })
	if err != nil {
		return err
	}
	if !b.add(stop) {
		stop()
	}
	return nil
}

// add has stop end a node's watch. It reports false if all watches were ended already.
func (b *bell) add(stop func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stopped {
		b.stops = append(b.stops, stop)
	}
	return !b.stopped
}

// notify takes a message of a node. If the waiter was woken in this round, a second message of the
// same node is about another release, and begins another round.
func (b *bell) notify(node int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return
	}
	if b.rung && b.seen[node] {
		b.n = 0
	}
	if b.n == 0 {
		clear(b.seen)
		b.rung = false
		b.round++
		round := b.round
		b.timer = time.AfterFunc(gatherTime, func() { b.endRound(round) })
	}
	if !b.seen[node] {
		b.seen[node] = true
		b.n++
	}
	if b.n >= b.majority {
		b.ring()
	}
}

// ring wakes the waiter once in a round. The caller holds b.mu.
func (b *bell) ring() {
	if !b.rung {
		b.rung = true
		b.wake()
	}
}

func (b *bell) endRound(round int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped || b.round != round {
		return
	}
	b.ring()
	b.n = 0
}

// stop ends the watches at all nodes. It does not hold b.mu meanwhile: a node may hold a mutex of
// its own while it notifies.
func (b *bell) stop() {
	for _, stop := range b.end() {
		stop()
	}
}

// end has no message count any more, and returns what ends the nodes' watches, once.
func (b *bell) end() (stops []func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	if b.timer != nil {
		b.timer.Stop()
	}
	stops, b.stops = b.stops, nil
	return stops
}
