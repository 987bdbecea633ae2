package switchlock

import (
	"context"
	"sync"

	"github.com/belaygo/belay/lock"
)

// Watch implements lock.Waker. When the engine to be watched changes, those who wait are woken
// and watch the next one. If that can't be watched, they poll.
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

// add watches a key.
func (ws *watchers) add(ctx context.Context, key string, wake func()) (stop func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &watcher{key: key, wake: wake}
	ws.mu.Lock()
	if ws.ctx.Err() != nil {
		ws.mu.Unlock()
		return nil, errClosed
	}
	ws.all[w] = struct{}{}
	current := ws.current
	ws.mu.Unlock()
	ws.watch(ctx, w, current)
	return func() { ws.remove(w) }, nil
}

// watch has w watch its key in an engine, unless that is not the current one any more.
func (ws *watchers) watch(ctx context.Context, w *watcher, in lock.Waker) {
	if in == nil {
		return
	}
	stop, err := in.Watch(ctx, w.key, w.wake)
	if err != nil {
		return
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
}

// move has all watch in another engine, if it is another, and those watch who could not.
func (ws *watchers) move(to lock.Waker) {
	ws.mu.Lock()
	moved := ws.current != to
	ws.current = to
	var idle []*watcher
	var stops []func()
	for w := range ws.all {
		if moved && w.stop != nil {
			stops = append(stops, w.stop)
			w.stop = nil
		}
		if w.stop == nil {
			idle = append(idle, w)
		}
	}
	ws.mu.Unlock()
	for _, w := range idle {
		ws.watch(ws.ctx, w, to)
	}
	for _, stop := range stops {
		stop()
	}
	if moved {
		for _, w := range idle {
			w.wake()
		}
	}
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
