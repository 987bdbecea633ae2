package lock

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/belaygo/belay/internal/isnil"
	"github.com/belaygo/belay/lock/internal/ability"
	"github.com/belaygo/belay/lock/lockengine"
)

// New returns a Locker on engine. It does not call the engine. The
// caller closes it.
func New(engine lockengine.Engine, cfg Config) (*Locker, error) {
	if isnil.Value(engine) {
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
		queues:  &queues{byKey: make(map[string]*queue)},
		closing: make(chan struct{}),
		drained: make(chan struct{}),
		stop:    make(chan struct{}),
		settled: make(chan struct{}),
		done:    make(chan struct{}),
		wake:    make(chan struct{}, 1),
	}
	l.losses, _ = engine.(lockengine.LossWatcher)
	if limiter, ok := engine.(ability.Limiter); ok {
		l.limited = limiter.Limit() <= cfg.answerTime()
	}
	l.orphans.all = make(map[string]*orphan)
	l.protected = make(map[string]int64)
	l.metrics = newMetrics(cfg.Name)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	go l.watch()
	return l, nil
}

// Engine returns the engine that New was given.
func (l *Locker) Engine() lockengine.Engine { return l.engine }
