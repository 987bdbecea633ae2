package switchlock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/belaygo/belay/lock"
)

// An Engine is a lock.Engine that keeps locks in one of several engines, and can move to
// another. It is a lock.Waker, a lock.Locator and a lock.Pinger as far as those are, and a
// prometheus.Collector. It is safe for concurrent use.
type Engine struct {
	cfg      Config
	begun    time.Time // the clock of the view starts here
	ctx      context.Context
	stop     context.CancelFunc
	kick     chan struct{} // somebody needs a fresh record
	moved    chan struct{} // those who wait may have to watch another engine
	ended    chan struct{} // closed when the reader has ended
	watchers *watchers
	metrics  *metrics

	mu     sync.Mutex
	view   view
	failed error         // why the last read failed
	read   chan struct{} // closed after the read that is under way or comes next
	both   map[hold]bool // in both engines, by the crossing of known
	// renewing are locks that are being renewed in both engines, which a release awaits: what
	// was released in one would be acquired again. Each is closed when that has ended.
	renewing map[hold]chan struct{}
	seen     map[string]int64 // the greatest token of each engine
}

// A hold names a lock as a request does.
type hold struct{ key, owner string }

func holdOf(r lock.Request) hold { return hold{r.Key, r.Owner} }

var (
	_ lock.Engine  = (*Engine)(nil)
	_ lock.Waker   = (*Engine)(nil)
	_ lock.Locator = (*Engine)(nil)
	_ lock.Pinger  = (*Engine)(nil)
)

// New returns an engine that reads the record from now on. It does not wait for it: the first
// acquire does.
func New(cfg Config) (*Engine, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Engine{
		cfg: cfg, begun: time.Now(), kick: make(chan struct{}, 1), moved: make(chan struct{}, 1), ended: make(chan struct{}),
		metrics: newMetrics(), failed: errNotRead, read: make(chan struct{}),
		both: make(map[hold]bool), renewing: make(map[hold]chan struct{}), seen: make(map[string]int64),
	}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.watchers = newWatchers(e.ctx)
	go e.run()
	return e, nil
}

var errClosed = fmt.Errorf("%w: switchlock: closed", lock.ErrDenied)

// Close ends the reading of the record, and has acquires and renewals fail. Close the Locker
// first. When ctx ends before a read that is on its way, Close returns ctx's error.
func (e *Engine) Close(ctx context.Context) error {
	e.stop()
	select {
	case <-e.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// now is the time on the clock of the view, which is monotonic.
func (e *Engine) now() time.Duration { return time.Since(e.begun) }

// look returns what the process knows now.
func (e *Engine) look() view {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.view
}
