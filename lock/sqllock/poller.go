package sqllock

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/wait"
)

// pollTimeout is how long a look at the table may take.
const pollTimeout = 5 * time.Second

// A poller polls for all waiters of this process, with one statement at a time. It runs
// while there are waiters.
type poller struct {
	ctx      context.Context
	held     func(ctx context.Context, names []string) (map[string]bool, error)
	from, to time.Duration
	logger   *slog.Logger
	begin    chan struct{} // there is a new waiter
	wg       sync.WaitGroup

	mu       sync.Mutex
	running  bool
	watchers map[string]map[*watcher]struct{} // by name; none is empty
}

type watcher struct{ wake func() }

func newPoller(ctx context.Context, held func(context.Context, []string) (map[string]bool, error), cfg Config) *poller {
	return &poller{
		ctx: ctx, held: held, from: cfg.PollFrom, to: cfg.PollTo, logger: cfg.Logger,
		begin: make(chan struct{}, 1), watchers: make(map[string]map[*watcher]struct{}),
	}
}

// Watch implements lockengine.Waker. It calls wake when a look at the table finds the key free,
// each time, and when the lock is released by this engine.
func (e *engine) Watch(ctx context.Context, key string, wake func()) (stop func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, w := e.poller, &watcher{wake}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return nil, errClosed
	}
	if p.watchers[key] == nil {
		p.watchers[key] = make(map[*watcher]struct{})
	}
	p.watchers[key][w] = struct{}{}
	if !p.running {
		p.running = true
		p.wg.Go(p.run)
	}
	wait.Wake(p.begin)
	return func() { p.unwatch(key, w) }, nil
}

func (p *poller) unwatch(key string, w *watcher) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watchers[key], w)
	if len(p.watchers[key]) == 0 {
		delete(p.watchers, key)
	}
}

// run polls the table until there is no waiter.
func (p *poller) run() {
	pause := p.from
	for {
		select {
		case <-p.begin:
			pause = p.from
		default:
		}
		if err := wait.Sleep(p.ctx, wait.Between(pause/2, pause), nil); err != nil {
			return
		}
		names := p.names()
		if names == nil {
			return
		}
		pause = min(p.to, pause+pause/4)
		if p.poll(names) {
			pause = p.from
		}
	}
}

// names returns the names with waiters. If there are none the poller ends.
func (p *poller) names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := slices.Collect(maps.Keys(p.watchers))
	p.running = names != nil
	return names
}

// poll wakes the waiters whose key is free. It reports whether there were any.
func (p *poller) poll(names []string) (woken bool) {
	ctx, cancel := context.WithTimeout(p.ctx, pollTimeout)
	defer cancel()
	var held map[string]bool
	err := background.Do(p.logger, "look for locks that are free", func() (err error) {
		held, err = p.held(ctx, names)
		return err
	})
	if err != nil {
		return false
	}
	for _, name := range names {
		if !held[name] {
			p.wake(name)
			woken = true
		}
	}
	return woken
}

// wake wakes all waiters for a name. It does not block.
func (p *poller) wake(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.watchers[name] {
		w.wake()
	}
}
