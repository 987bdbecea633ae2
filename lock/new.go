package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// New returns a Locker on engine. It does not ask the engine for anything. The
// caller closes it.
func New(engine Engine, cfg Config) (*Locker, error) {
	if engine == nil {
		return nil, errors.New("lock: engine is nil")
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Locker{
		engine:  engine,
		cfg:     cfg,
		epoch:   time.Now(),
		id:      uuid.NewString(),
		queues:  newQueues(),
		closing: make(chan struct{}),
		drained: make(chan struct{}),
		stop:    make(chan struct{}),
		settled: make(chan struct{}),
		done:    make(chan struct{}),
		wake:    make(chan struct{}, 1),
	}
	l.orphans.all = make(map[string]*orphan)
	l.protected = make(map[string]int64)
	l.metrics = newMetrics(cfg.Name)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	go l.watch()
	return l, nil
}

// Ping reports whether the engine answers, if it can tell: engines may have a
// method Ping(context.Context) error.
func (l *Locker) Ping(ctx context.Context) error {
	p, ok := l.engine.(interface{ Ping(context.Context) error })
	if !ok {
		return nil
	}
	return p.Ping(ctx)
}

// Inspect asks the engine who holds key now.
func (l *Locker) Inspect(ctx context.Context, key string) (Holder, error) {
	h, err := l.engine.Inspect(ctx, key)
	if err != nil {
		return Holder{}, fmt.Errorf("inspect lock %q: %w", key, err)
	}
	return h, nil
}

// Locate tells where the engine keeps the lock on key, as far as it knows
// without being asked: see Locator.
func (l *Locker) Locate(ctx context.Context, key string) Place {
	if e, ok := l.engine.(Locator); ok {
		return e.Locate(ctx, key)
	}
	return Place{Slot: -1}
}

// Probe checks whether the engine grants locks in the place of key: see Prober. An
// engine that is no Prober is asked who holds key.
func (l *Locker) Probe(ctx context.Context, key string) error {
	p, ok := l.engine.(Prober)
	if !ok {
		_, err := l.Inspect(ctx, key)
		return err
	}
	if err := p.Probe(ctx, key); err != nil {
		return fmt.Errorf("probe lock %q: %w", key, err)
	}
	return nil
}
