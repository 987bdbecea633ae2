package switchlock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/lock/lockengine"
)

// An Engine keeps locks in one of several engines, and can move them to another. It wakes waiters,
// watches losses, locates locks and pings by those of the engines that do. Its metrics are
// belay_switch_. It is safe for concurrent use.
type Engine interface {
	lockengine.Engine
	lockengine.Waker
	lockengine.LossWatcher
	lockengine.Locator
	lockengine.Pinger
	prometheus.Collector

	// To begins a switch: it writes a new record to the source, and returns that. It does not wait
	// until the switch is over: see State. If the engine keeps the locks already, or they move to
	// it, To changes nothing and returns the present record.
	//
	// To first acquires and releases a lock in the new engine, and returns an error if that fails.
	// The error matches ErrUnsettled if the last switch is not settled and the engine is a third
	// one, or if GoneSince is set and locks move to the engine already. To also returns an error if
	// GoneSince is set and the old engine grants a lock, denies or refuses it, or returns ErrUnusable:
	// it may renew the locks that it has granted. If the source can't be written, it is unknown whether the switch has begun:
	// call To again.
	To(ctx context.Context, c Change) (Record, error)

	// Retime changes Lease and TTL for all processes, to 100 ms to one hour each. It writes a new
	// record to the source, and returns that. No lock moves. Like a switch, a Retime takes the longer
	// Lease + TTL until it is settled, and no switch can begin before that. It returns an error that
	// matches ErrUnsettled while a switch is not settled.
	//
	// For a longer ttl of locks, call Retime first, and then set lock.Config.TTL. For a shorter one, set
	// lock.Config.TTL of all processes first: acquires and renewals with a ttl above that of the record
	// are denied as soon as a process has read it.
	Retime(ctx context.Context, lease, ttl time.Duration) (Record, error)

	// State returns what this process knows of the record. It does not read the record or wait.
	State() State
}

type engine struct {
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
	both   map[hold]bool // locks that are in both engines, by the switch of view.known
	// renewing has the locks that are being renewed in both engines: a release waits until the
	// last of the renewals has ended. releasing has the locks that are being released, or wait for
	// that: such a renewal leaves them out. Otherwise the renewal could acquire the lock again that
	// the release has freed.
	renewing  map[hold]*renewals
	releasing map[hold]int     // by how many releases
	seen      map[string]int64 // the greatest token of each engine
}

// A hold names a lock as a request does.
type hold struct{ key, owner string }

func holdOf(r lockengine.Request) hold { return hold{r.Key, r.Owner} }

// New returns an engine, and starts to read the record in the background. It returns an error
// only if cfg is wrong. It does not wait for the record: the first acquire does.
func New(cfg Config) (Engine, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &engine{
		cfg: cfg, begun: time.Now(), kick: make(chan struct{}, 1), moved: make(chan struct{}, 1), ended: make(chan struct{}),
		metrics: newMetrics(), failed: errNotRead, read: make(chan struct{}),
		both: make(map[hold]bool), renewing: make(map[hold]*renewals), releasing: make(map[hold]int),
		seen: make(map[string]int64),
	}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.watchers = newWatchers(e.ctx)
	go e.run()
	return e, nil
}

var errClosed = fmt.Errorf("%w: switchlock: closed", lockengine.ErrDenied)

// Close stops reading the record. Acquires, renewals and releases fail from then on, so close the
// Locker first, and the engines of Config.Engines after this one. Close waits for a read that is on
// its way; if ctx ends before that, it returns ctx's error.
func (e *engine) Close(ctx context.Context) error {
	e.stop()
	select {
	case <-e.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// now returns the time since New, on the monotonic clock that the view uses.
func (e *engine) now() time.Duration { return time.Since(e.begun) }

// look returns what the process knows now.
func (e *engine) look() view {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.view
}
