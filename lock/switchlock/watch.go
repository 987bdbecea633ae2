package switchlock

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock/lockengine"
)

// Watch implements lockengine.Waker: it watches the key in the engine that a lock is released in. While
// locks move, it watches both engines: processes that need the new one alone release a lock there
// only, and pass it on in its line. When the engines change, all waiters are woken, and their
// watches move; those whose watch can't move are woken as often as a Locker polls. Watch returns an
// error if the old engine is no lockengine.Waker; then the Locker polls.
func (e *engine) Watch(ctx context.Context, key string, wake func()) (stop func(), err error) {
	return e.watchers.add(ctx, key, wake)
}

// A feed notifies of the releases of locks: an engine, or both of a switch.
type feed struct {
	waker lockengine.Waker // nil = they do not notify
	// engines has their names, by which feeds are compared: engines need not be comparable.
	engines [2]string
}

// feed returns that of the engines which keep the locks now. It has no waker if the first of them is
// none.
func (e *engine) feed() feed {
	names := e.look().holding(e.now())
	first, ok := e.cfg.Engines[names[0]].(lockengine.Waker)
	if !ok {
		return feed{}
	}
	last := names[len(names)-1]
	second, ok := e.cfg.Engines[last].(lockengine.Waker)
	if !ok || len(names) == 1 {
		return feed{first, [2]string{names[0]}}
	}
	return feed{pair{first, second}, [2]string{names[0], last}}
}

// A pair watches a key in both engines of a switch.
type pair struct{ first, second lockengine.Waker }

// Watch returns an error if the first engine is not watched. If only the second is not, waiters
// that it refuses poll, as they do in any case.
func (p pair) Watch(ctx context.Context, key string, wake func()) (stop func(), err error) {
	stopFirst, err := p.first.Watch(ctx, key, wake)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	stopSecond, err := p.second.Watch(ctx, key, wake)
	if err != nil {
		return stopFirst, nil // one of the two is watched
	}
	return both(stopFirst, stopSecond), nil
}

// watchers are the callers of this process that wait for locks.
type watchers struct {
	ctx context.Context

	mu      sync.Mutex
	current feed
	all     map[*watcher]struct{}
}

type watcher struct {
	key  string
	wake func()

	// Guarded by watchers.mu.
	stop  func()      // nil = it watches nothing
	polls *time.Timer // wakes it while it watches nothing, if it watched something before
}

func newWatchers(ctx context.Context) *watchers {
	return &watchers{ctx: ctx, all: make(map[*watcher]struct{})}
}

// errNotWatched is returned for an engine that is no Waker. The Locker polls then.
var errNotWatched = errors.New("switchlock: the engine does not notify of releases")

// add watches a key.
func (ws *watchers) add(ctx context.Context, key string, wake func()) (stop func(), err error) {
	w := &watcher{key: key, wake: wake}
	ws.mu.Lock()
	ws.all[w] = struct{}{}
	current := ws.current
	ws.mu.Unlock()
	err = ws.watch(ctx, w, current)
	if err == nil {
		err = ws.ctx.Err()
	}
	if err != nil {
		ws.remove(w)
		return nil, err
	}
	return func() { ws.remove(w) }, nil
}

// watch makes w watch its key in a feed. It does nothing if that is not the current one any more:
// then move does it.
func (ws *watchers) watch(ctx context.Context, w *watcher, in feed) error {
	if in.waker == nil {
		return errNotWatched
	}
	stop, err := in.waker.Watch(ctx, w.key, w.wake)
	if err != nil {
		return err
	}
	ws.mu.Lock()
	_, waits := ws.all[w]
	if waits && ws.current.engines == in.engines && w.stop == nil {
		w.stop, stop = stop, nil
	}
	ws.mu.Unlock()
	if stop != nil {
		stop()
	}
	return nil
}

// watchTimeout is how long all watches together have to move to another engine.
const watchTimeout = time.Second

// move makes to the current feed, and sets the watches there: all of them if to is another feed,
// otherwise those that could not be set before. Their waiters are woken, because the lock
// may have become free meanwhile.
func (ws *watchers) move(to feed, logger *slog.Logger) {
	idle, stops := ws.leave(to)
	for _, stop := range stops {
		_ = background.Do(logger, "end a watch", func() error { stop(); return nil })
	}
	ctx, cancel := context.WithTimeout(ws.ctx, watchTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, w := range idle {
		wg.Go(func() {
			err := background.Do(logger, "watch a key", func() error { return ws.watch(ctx, w, to) })
			w.wake()
			if err != nil {
				ws.poll(w)
			}
		})
	}
	wg.Wait()
}

// How long a waiter sleeps that watches nothing: as long as lock.Locker does without a subscription.
const pollFrom, pollTo = 10 * time.Millisecond, 50 * time.Millisecond

// poll wakes w, again and again while it waits and watches nothing. Its Locker takes it for
// subscribed, and would sleep for up to a second.
func (ws *watchers) poll(w *watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if _, waits := ws.all[w]; !waits || w.stop != nil {
		return
	}
	w.wake()
	if w.polls == nil {
		w.polls = time.AfterFunc(time.Hour, func() { ws.poll(w) })
	}
	w.polls.Reset(wait.Between(pollFrom, pollTo))
}

// leave takes all watches off the current feed, if to is another one. It returns the watchers
// that have no watch now, and what stops the watches that they had.
func (ws *watchers) leave(to feed) (idle []*watcher, stops []func()) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	moved := ws.current.engines != to.engines
	ws.current = to
	for w := range ws.all {
		if moved && w.stop != nil {
			stops = append(stops, w.stop)
			w.stop = nil
		}
		if w.stop == nil {
			idle = append(idle, w)
		}
	}
	return idle, stops
}

func (ws *watchers) remove(w *watcher) {
	ws.mu.Lock()
	stop := w.stop
	w.stop = nil
	delete(ws.all, w)
	ws.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// close ends all watches.
func (ws *watchers) close(logger *slog.Logger) {
	ws.mu.Lock()
	all := ws.all
	ws.all = make(map[*watcher]struct{})
	ws.mu.Unlock()
	for w := range all {
		_ = background.Do(logger, "end a watch", func() error { ws.remove(w); return nil })
	}
}
