package switchlock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/belaygo/belay/lock"
)

// Watch implements lock.Waker: it watches the key in the engine that a lock is released in last.
// When that becomes another engine, all waiters are woken, and their watches move to it. Watch
// returns an error if that engine is no lock.Waker; then the Locker polls.
func (e *Engine) Watch(ctx context.Context, key string, wake func()) (stop func(), err error) {
	return e.watchers.add(ctx, key, wake)
}

// waker returns the engine that a lock is released in last, or nil if that is no Waker.
func (e *Engine) waker() lock.Waker {
	v := e.look()
	w, _ := e.cfg.Engines[v.holding(e.now())[0]].(lock.Waker)
	return w
}

// watchers are the callers of this process that wait for locks.
type watchers struct {
	ctx context.Context

	mu      sync.Mutex
	current lock.Waker
	all     map[*watcher]struct{}
}

type watcher struct {
	key  string
	wake func()
	stop func() // nil = it watches nothing
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

// watch makes w watch its key in an engine. It does nothing if that is not the current engine
// any more: then move does it.
func (ws *watchers) watch(ctx context.Context, w *watcher, in lock.Waker) error {
	if in == nil {
		return errNotWatched
	}
	stop, err := in.Watch(ctx, w.key, w.wake)
	if err != nil {
		return err
	}
	ws.mu.Lock()
	_, waits := ws.all[w]
	if waits && ws.current == in && w.stop == nil {
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

// move makes to the current engine, and sets the watches there: all of them if to is another
// engine, otherwise those that could not be set before. Their waiters are woken, because the lock
// may have become free meanwhile.
func (ws *watchers) move(to lock.Waker) {
	idle, stops := ws.leave(to)
	for _, stop := range stops {
		stop()
	}
	ctx, cancel := context.WithTimeout(ws.ctx, watchTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, w := range idle {
		wg.Go(func() {
			_ = ws.watch(ctx, w, to) // if it fails, the waiter polls until the next move
			w.wake()
		})
	}
	wg.Wait()
}

// leave takes all watches off the current engine, if to is another one. It returns the watchers
// that have no watch now, and what stops the watches that they had.
func (ws *watchers) leave(to lock.Waker) (idle []*watcher, stops []func()) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	moved := ws.current != to
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
func (ws *watchers) close() {
	ws.mu.Lock()
	all := ws.all
	ws.all = make(map[*watcher]struct{})
	ws.mu.Unlock()
	for w := range all {
		ws.remove(w)
	}
}
