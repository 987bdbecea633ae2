package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// Op is a business operation. It runs in one transaction, tx, and must use tx
// and ctx, not those of its surroundings: ctx ends when the lock is lost. When
// it returns an error, everything is rolled back.
type Op func(ctx context.Context, tx *gorm.DB) error

// Config describes a Guard. Service is required.
type Config struct {
	// Service is the name under which lock failures are reported.
	Service string
	// Instance tells one instance of the service from another. Default:
	// host name and process id.
	Instance string
	// Publisher takes the events; an outbox.Outbox loses none. Default: they are
	// logged, without a Logger by slog's default one, for nobody may miss them.
	Publisher notify.Publisher
	// Logger is told of what can't be returned. Default: silent.
	Logger *slog.Logger
	// EndTimeout bounds COMMIT and ROLLBACK, the reads and the question to the
	// lock after a conflict, and the hand-over of an event, each. They do not
	// end with the caller's context. Default 5 s.
	EndTimeout time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if c.Service == "" {
		return c, errors.New("guard: Config.Service is empty")
	}
	if c.EndTimeout < 0 {
		return c, fmt.Errorf("guard: Config.EndTimeout is %v", c.EndTimeout)
	}
	if c.EndTimeout == 0 {
		c.EndTimeout = 5 * time.Second
	}
	if c.Instance == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		c.Instance = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	if c.Publisher == nil {
		c.Publisher = notify.Log(c.Logger)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Guard runs operations that must take effect once. It is safe for concurrent
// use.
type Guard struct {
	db      *gorm.DB
	locker  *lock.Locker
	cfg     Config
	running running
}

// New returns a Guard for operations on db under the locks of locker. It
// installs dbguard on db, and asks no server for anything.
//
// The caller owns db, locker and the publisher. Close in this order: the Guard,
// the Locker, the Publisher, the database.
func New(db *gorm.DB, locker *lock.Locker, cfg Config) (*Guard, error) {
	if locker == nil {
		return nil, errors.New("guard: locker is nil")
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := dbguard.Install(db); err != nil {
		return nil, err
	}
	return &Guard{db: db, locker: locker, cfg: cfg, running: newRunning()}, nil
}

// Do runs op once under the lock on key. See the error variables for what it
// returns. If op panics, everything is rolled back, the lock is released, and
// the panic goes on.
func (g *Guard) Do(ctx context.Context, key string, op Op, opts ...Option) error {
	if op == nil {
		return ErrNilOp
	}
	if dbguard.FromContext(ctx) != nil {
		return ErrNested
	}
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	if !g.running.enter() {
		return ErrClosed
	}
	defer g.running.leave()

	lease, err := g.acquire(ctx, key, o.wait)
	if err != nil {
		return err
	}
	a := &attempt{guard: g, ctx: ctx, lease: lease}
	return a.run(op, o.protects)
}

// acquire takes the lock and puts a refusal into Do's words.
func (g *Guard) acquire(ctx context.Context, key string, wait time.Duration) (*lock.Lease, error) {
	lease, err := g.ask(ctx, key, wait)
	var held *lock.HeldError
	switch {
	case err == nil:
		return lease, nil
	case errors.As(err, &held):
		if !ended(ctx) { // our own limit ended the wait, not the caller
			held = &lock.HeldError{Key: held.Key, Holder: held.Holder}
		}
		return nil, fmt.Errorf("%w: %w", ErrBusy, held)
	case errors.Is(err, lock.ErrClosed):
		return nil, fmt.Errorf("%w: %w", ErrClosed, err)
	case errors.Is(err, lock.ErrInvalidKey), ended(ctx):
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// ended reports whether ctx has ended, or its deadline has passed and it does not
// know yet: the lock, which looks at the clock, may be the first to notice.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

func (g *Guard) ask(ctx context.Context, key string, wait time.Duration) (*lock.Lease, error) {
	if wait <= 0 {
		return g.locker.TryAcquire(ctx, key)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return g.locker.Acquire(ctx, key)
}

// Ping reports whether the database and the first layer answer.
func (g *Guard) Ping(ctx context.Context) error {
	pool, err := g.db.DB()
	if err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	if err := pool.PingContext(ctx); err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	return g.locker.Ping(ctx)
}

// Close refuses new calls of Do and waits until those that run have ended, or
// ctx ends; then it returns ctx's error. It may be called again.
func (g *Guard) Close(ctx context.Context) error { return g.running.close(ctx) }
