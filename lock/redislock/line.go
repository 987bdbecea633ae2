package redislock

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/lock/lockengine"
)

// leaveTime is how long the engine tries to leave a line.
const leaveTime = time.Second

// lineOf returns the name of a lock's line, or nothing if the user may not use lines.
func (e *engine) lineOf(name string) string {
	if e.noLines.Load() {
		return ""
	}
	return e.beside("line", name)
}

// lineRefused reports whether err shows that nothing was executed because cmd has two keys:
// the user may not use the line, or the slot migrates and one of the two is not at this node.
// It removes the line from cmd, for a second attempt.
func lineRefused(cmd *command, err error) bool {
	if err == nil || cmd.line == "" || !redis.HasErrorPrefix(err, "TRYAGAIN") && (!denied(err) || !keyDenied(err)) {
		return false
	}
	cmd.line = ""
	return true
}

// executed returns err, the result of a second attempt without the line. If the user may use
// the lock, but not its line, the engine uses no line from now on.
func (e *engine) executed(err, refusal error) error {
	if err == nil && denied(refusal) {
		e.noLines.Store(true)
	}
	return err
}

// offered is the suffix of an offer's owner, after the engine's id. Owners of grants
// end with a number from 1.
const offered = ":0"

func isOffer(owner string) bool { return strings.HasSuffix(owner, offered) }

// leaveLine leaves the line of a lock, and releases the lock if it is offered to this
// engine already. If leaveLine fails, the others lose 20 ms.
func (e *engine) leaveLine(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	_ = background.Do(nil, "redislock: leave the line of a lock", func() error {
		return e.run(ctx, e.releaseOf(name, lockengine.Request{Owner: e.id + offered}, e.id))
	})
}

// stands notes whether this engine stands in the line of a lock.
func (w *waker) stands(name string, in bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.topics[channel(name)]; t != nil {
		t.inLine = in
	}
}

// listens reports whether this engine receives the release of a lock.
func (w *waker) listens(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.topics) == 0 { // most often: nobody waits
		return false
	}
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
