package quorumlock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/isnil"
	"github.com/belaygo/belay/lock/internal/ability"
	"github.com/belaygo/belay/lock/lockengine"
)

// An Engine keeps each lock on a majority of its nodes, which are other engines. It wakes waiters,
// watches losses and keeps markers if its nodes do. It is safe for concurrent use.
type Engine interface {
	lockengine.Engine
	lockengine.Waker
	lockengine.LossWatcher
	lockengine.Pinger
}

type engine struct {
	nodes    []lockengine.Engine
	majority int
	cfg      Config
	ttl      atomic.Int64 // of the last acquire

	mu      sync.Mutex
	courses map[hold]*course
	closed  bool
	running sync.WaitGroup // calls, and what goes on after they have returned
}

// New returns an engine that keeps each lock on a majority of the nodes. Their number must be odd
// and at least three, each must be on a server of its own, and every process must name them in the
// same order. New sends no request. Close does not close the nodes: close them after the engine.
func New(nodes []lockengine.Engine, cfg Config) (Engine, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if n := len(nodes); n < 3 || n%2 == 0 {
		return nil, fmt.Errorf("quorumlock: there are %d nodes, want an odd number of 3 or more", n)
	}
	for i, node := range nodes {
		if err := checkNode(nodes[:i], node, cfg); err != nil {
			return nil, fmt.Errorf("quorumlock: node %d: %w", i+1, err)
		}
	}
	return &engine{
		nodes:    append([]lockengine.Engine(nil), nodes...),
		majority: len(nodes)/2 + 1,
		cfg:      cfg,
		courses:  make(map[hold]*course),
	}, nil
}

// checkNode returns why node can't be one beside those before it.
func checkNode(before []lockengine.Engine, node lockengine.Engine, cfg Config) error {
	if isnil.Value(node) {
		return errors.New("it is nil")
	}
	for i, other := range before {
		if reflect.ValueOf(node).Comparable() && node == other {
			return fmt.Errorf("it is the same engine as node %d", i+1)
		}
	}
	if cfg.Durable {
		return nil
	}
	starter, ok := node.(ability.Starter)
	if !ok {
		return fmt.Errorf("a %T does not know when its server started: set Config.Durable if it never forgets a lock", node)
	}
	_, err := starter.Started()
	return err
}

// Close makes later calls fail, and waits for the requests that are on their way. If ctx ends
// before they do, Close returns ctx's error. Close the Locker first, and the nodes afterwards.
func (e *engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.running.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enter begins a call, which ends with running.Done.
func (e *engine) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", lockengine.ErrNotSent, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed
	}
	e.running.Add(1)
	return nil
}

// ask calls all nodes at once, and sends their answers to the channel as they come. A call goes on
// until its timeout, even if its answer is not read.
func ask[T any](ctx context.Context, e *engine, timeout time.Duration, call func(ctx context.Context, node int) T) <-chan T {
	answers := make(chan T, len(e.nodes))
	for i := range e.nodes {
		e.running.Go(func() {
			ctx, cancel := within(ctx, timeout)
			defer cancel()
			answers <- call(ctx, i)
		})
	}
	return answers
}

// within returns a context with the values of ctx, which ends after the timeout of a node.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), timeout)
}

// call calls a node in a goroutine that no caller has. A panic of the node is an error that leaves
// open whether the request was executed.
func call(what string, f func() error) error {
	err := background.Do(nil, "quorumlock: "+what, f)
	if errors.Is(err, background.ErrPanic) {
		return fmt.Errorf("%w: %w", lockengine.ErrNoAnswer, err)
	}
	return err
}

func (e *engine) place() lockengine.Place { return lockengine.Place{Node: e.cfg.Name, Slot: -1} }
