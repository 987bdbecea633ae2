package redislock

import (
	"context"
	"strings"
	"time"

	"github.com/belaygo/belay/lock"
)

// leaveTime is how long the engine tries to leave a line.
const leaveTime = time.Second

// waits is what the script is told of a caller: 0 if it does not wait, 1 if it does and
// may stand in line, 2 if no message would reach it in its turn.
func (e *Engine) waits(name string, r lock.Request) int {
	switch {
	case !r.Waits:
		return 0
	case e.waker.listens(name):
		return 1
	}
	return 2
}

// offered is the end of the owner of a lock that is offered to an engine, behind the
// engine's id. Owners of grants end with a number from 1.
const offered = ":0"

func isOffer(owner string) bool { return strings.HasSuffix(owner, offered) }

// leaveLine leaves the line of a lock, and releases the lock if that is offered to this
// engine already. If it can't, the others lose 20 ms.
func (e *Engine) leaveLine(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	_ = e.run(ctx, e.releaseOf(name, lock.Request{Owner: e.id + offered}, e.id))
}

// stands notes whether this engine stands in the line of a lock.
func (w *waker) stands(name string, in bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.topics[channel(name)]; t != nil {
		t.inLine = in
	}
}

// listens reports whether this engine is told of the release of a lock.
func (w *waker) listens(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.topics[channel(name)]
	return t != nil && t.confirmed
}

// unwatch removes a watcher. With the last one the engine leaves the line.
func (w *waker) unwatch(t *topic, x *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(t.watchers, x)
	if len(t.watchers) > 0 || !t.inLine || w.ctx.Err() != nil {
		return
	}
	t.inLine = false
	w.wg.Go(func() { w.leaveLine(w.ctx, t.name) })
}
