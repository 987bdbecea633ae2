package switchlock

import "github.com/belaygo/belay/lock/lockengine"

// WatchLoss implements lockengine.LossWatcher by the engine that keeps the lock now, and by both while
// locks move. It does not follow a lock that moves later: the next renewal finds its loss. The end of
// such a lock in the old engine is reported in vain.
func (e *engine) WatchLoss(r lockengine.Request, lost func()) (stop func()) {
	stop = func() {}
	for _, name := range e.look().holding(e.now()) {
		if w, ok := e.cfg.Engines[name].(lockengine.LossWatcher); ok {
			stop = both(stop, w.WatchLoss(r, lost))
		}
	}
	return stop
}

// both returns a function that calls two others, also if the first one panics.
func both(first, second func()) func() {
	return func() { defer second(); first() }
}
