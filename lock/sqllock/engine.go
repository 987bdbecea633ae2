package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/belaygo/belay/lock"
)

// An Engine is a lock.Engine in a table, a lock.Waker and a lock.Pinger. It keeps markers.
// It is safe for concurrent use.
type Engine struct {
	pool *sql.DB
	dialect
	cfg    Config
	poller *poller
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	swept  chan struct{} // closed when the sweep has ended
}

var (
	_ lock.Engine = (*Engine)(nil)
	_ lock.Waker  = (*Engine)(nil)
	_ lock.Pinger = (*Engine)(nil)
)

// New returns an engine on pool, which is for locks alone: see the package documentation.
// It does not dial. The pool stays the caller's, to be closed after the engine.
func New(pool *sql.DB, d Dialect, cfg Config) (*Engine, error) {
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
	e := &Engine{pool: pool, dialect: known, cfg: cfg, swept: make(chan struct{})}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.poller = newPoller(e.ctx, e.held, cfg.PollFrom, cfg.PollTo)
	go e.sweepAll()
	return e, nil
}

func dialectOf(d Dialect) (dialect, error) {
	known, ok := dialects[d]
	if !ok {
		return dialect{}, fmt.Errorf("sqllock: dialect is %q; locks are kept in %s, %s and %s", d, MySQL, Postgres, SQLite)
	}
	return known, nil
}

// Close ends what the engine does by itself, and has its methods fail. Close the Locker
// first. When ctx ends before a statement that is on its way, Close returns ctx's error.
func (e *Engine) Close(ctx context.Context) error {
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

// Ping implements lock.Pinger: it returns nil if the tables can be read.
func (e *Engine) Ping(ctx context.Context) error {
	const query = "SELECT l.name, l.owner, l.token, l.until_us, d.name, d.until_us FROM belay_lock AS l, belay_done AS d WHERE 1 = 0"
	return e.query(ctx, "ping", query, nil, func(func(...any) error) error { return nil })
}

// probeName is the lock that probes acquire. It is not UTF-8, so it is nobody's key.
const probeName = "\xffprobe"

// Probe implements lock.Pinger: it acquires a lock of a microsecond beside all others.
func (e *Engine) Probe(ctx context.Context, _ string) error {
	_, err := e.acquire(ctx, lock.Request{Key: probeName, Owner: "probe:0"}, time.Microsecond)
	return err
}

func (e *Engine) place() lock.Place { return lock.Place{Node: e.cfg.Name, Slot: -1} }

// microseconds are at least d.
func microseconds(d time.Duration) int64 {
	if d > math.MaxInt64/2 {
		d = math.MaxInt64 / 2 // some 146 years
	}
	return max(1, int64((d+time.Microsecond-1)/time.Microsecond))
}

// remaining is what is left of a lock, at least the shortest time.
func remaining(us int64) time.Duration { return max(1, time.Duration(us)*time.Microsecond) }
