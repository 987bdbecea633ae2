package quorumlock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/lock"
)

// An Engine is a lock.Engine on several others, a lock.Waker and a lock.Pinger. It keeps
// markers if its nodes do. It is safe for concurrent use.
type Engine struct {
	nodes    []lock.Engine
	majority int
	cfg      Config
	ttl      atomic.Int64 // of the last acquire

	mu      sync.Mutex
	courses map[hold]*course
	closed  bool
	running sync.WaitGroup // calls, and what goes on after they have returned
}

var (
	_ lock.Engine = (*Engine)(nil)
	_ lock.Waker  = (*Engine)(nil)
	_ lock.Pinger = (*Engine)(nil)
)

// New returns an engine that keeps each lock on a majority of the nodes. There is an odd
// number of them, three or more, each on a server of its own, and every process names them
// in the same order. New calls none of them. They stay the caller's, to be closed after the
// engine.
func New(nodes []lock.Engine, cfg Config) (*Engine, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if n := len(nodes); n < 3 || n%2 == 0 {
		return nil, fmt.Errorf("quorumlock: there are %d nodes, want an odd number from 3 on", n)
	}
	for i, node := range nodes {
		if err := checkNode(nodes[:i], node, cfg); err != nil {
			return nil, fmt.Errorf("quorumlock: node %d: %w", i+1, err)
		}
	}
	return &Engine{
		nodes:    append([]lock.Engine(nil), nodes...),
		majority: len(nodes)/2 + 1,
		cfg:      cfg,
		courses:  make(map[hold]*course),
	}, nil
}

// checkNode returns why node can't be one beside those before it.
func checkNode(before []lock.Engine, node lock.Engine, cfg Config) error {
	v := reflect.ValueOf(node)
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("it is nil")
	}
	for i, other := range before {
		if v.Comparable() && node == other {
			return fmt.Errorf("it is node %d, too", i+1)
		}
	}
	if cfg.Durable {
		return nil
	}
	starter, ok := node.(Starter)
	if !ok {
		return fmt.Errorf("a %T is no Starter: set Config.Durable if it forgets no lock", node)
	}
	_, err := starter.Started()
	return err
}

// Close waits for the requests that are on their way, and has later calls fail. Close the
// Locker first. When ctx ends before that, Close returns ctx's error.
func (e *Engine) Close(ctx context.Context) error {
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
func (e *Engine) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", lock.ErrNotSent, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed
	}
	e.running.Add(1)
	return nil
}

// ask calls each node at once, and returns what they answer as it comes. A call goes on
// when nobody waits for it any more, until its timeout.
func ask[T any](ctx context.Context, e *Engine, timeout time.Duration, call func(ctx context.Context, node int) T) <-chan T {
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

func (e *Engine) place() lock.Place { return lock.Place{Node: e.cfg.Name, Slot: -1} }
