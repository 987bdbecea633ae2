package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/lock/internal/ability"
	"github.com/belaygo/belay/lock/lockengine"
)

// An Engine keeps locks in a table, and markers. It is safe for concurrent use.
type Engine interface {
	lockengine.Engine
	lockengine.Waker
	lockengine.Pinger

	ability.Adopter // for package switchlock
}

type engine struct {
	pool *sql.DB
	dialect
	cfg    Config
	poller *poller
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	swept  chan struct{} // closed when the sweep has ended
	keyed  atomic.Bool   // the tables have their primary keys
}

// New returns an engine on pool, which is for locks alone: see the package documentation.
// It does not dial. The pool stays the caller's, to be closed after the engine.
func New(pool *sql.DB, d Dialect, cfg Config) (Engine, error) {
	if pool == nil {
		return nil, errors.New("sqllock: pool is nil")
	}
	known, err := dialectOf(d)
	if err != nil {
		return nil, err
	}
	cfg, err = cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &engine{pool: pool, dialect: known, cfg: cfg, swept: make(chan struct{})}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.poller = newPoller(e.ctx, e.held, cfg)
	go e.sweepAll()
	return e, nil
}

// Close stops the engine's goroutines, and makes its methods fail. Close the Locker
// first. When ctx ends before a statement that is on its way, Close returns ctx's error.
func (e *engine) Close(ctx context.Context) error {
	e.poller.mu.Lock() // no Watch starts the poller from now on
	e.stop()
	e.poller.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-e.swept
		e.poller.wg.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ping implements lockengine.Pinger: it returns nil if the tables can be read, and have their
// primary keys.
func (e *engine) Ping(ctx context.Context) error {
	const query = "SELECT l.name, l.owner, l.token, l.until_us, d.name, d.until_us FROM belay_lock AS l, belay_done AS d WHERE 1 = 0"
	if err := e.query(ctx, "ping", query, nil, func(func(...any) error) error { return nil }); err != nil {
		return err
	}
	return e.checkKeys(ctx)
}

// checkKeys returns an error if a table's primary key is not that of the schema: any caller
// would get any lock. Correct tables are not checked again.
func (e *engine) checkKeys(ctx context.Context) error {
	if e.unkeyed == "" || e.keyed.Load() {
		return nil
	}
	n := 0
	err := e.query(ctx, "read the primary keys", e.unkeyed, nil, func(scan sqldb.Scan) error { return scan(&n) })
	if err == nil && n > 0 {
		err = fmt.Errorf("sqllock: %w", errUnkeyed)
	}
	e.keyed.Store(err == nil)
	return err
}

// probeName is the lock that probes acquire. It is not UTF-8, so it cannot be a key.
const probeName = "\xffprobe"

// Probe implements lockengine.Pinger: it acquires a lock of a microsecond that is no key's.
func (e *engine) Probe(ctx context.Context, _ string) error {
	_, err := e.acquire(ctx, lockengine.Request{Key: probeName, Owner: "probe:0"}, time.Microsecond)
	return err
}

func (e *engine) place() lockengine.Place { return lockengine.Place{Node: e.cfg.Name, Slot: -1} }

// microseconds are at least d.
func microseconds(d time.Duration) int64 {
	if d > math.MaxInt64/2 {
		d = math.MaxInt64 / 2 // some 146 years
	}
	return max(1, int64((d+time.Microsecond-1)/time.Microsecond))
}

// remaining returns the remaining time of a lock, at least the shortest duration.
func remaining(us int64) time.Duration { return max(1, time.Duration(us)*time.Microsecond) }
