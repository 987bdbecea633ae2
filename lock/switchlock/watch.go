package switchlock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/belaygo/belay/lock"
)

// Watch implements lock.Waker. When locks move, those who wait are woken, and watch the engine
// that is asked first then. It returns an error if that tells nobody of releases.
func (e *Engine) Watch(ctx context.Context, key string, wake func()) (stop func(), err error) {
	return e.watchers.add(ctx, key, wake)
}

// waker is the engine that is released last, and nil if that is no Waker.
func (e *Engine) waker() lock.Waker {
	v := e.look()
	w, _ := e.cfg.Engines[v.holding(e.now())[0]].(lock.Waker)
	return w
}

// watchers are those who wait for locks in this process.
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

// errNotWatched has those who wait poll.
var errNotWatched = errors.New("switchlock: the engine tells nobody of releases")

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

// watch has w watch its key in an engine, unless that is not the current one any more: then
// move has seen to it.
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

// watchTimeout is how long those who wait try to watch another engine.
const watchTimeout = time.Second

// move has all watch an engine, if it is another one, and those who could not before. Who
// moves is woken: the lock may have become free on the way.
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
			_ = ws.watch(ctx, w, to) // they poll, and it is tried again
			w.wake()
		})
	}
	wg.Wait()
}

// leave has all stop watching another engine than this. It returns those who watch none now,
// and what stops their watches.
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
