package sim

import (
	"errors"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
)

// learn takes in what an operation was told.
func (w *world) learn(o *op) {
	if held, ok := errors.AsType[*lock.HeldError](o.err); ok {
		w.ownGhost(o, held)
	}
}

// ownGhost is I8: nobody is rejected because of a lock that its own Locker has taken and
// that nobody uses, unless the request that would have released it went astray.
func (w *world) ownGhost(o *op, held *lock.HeldError) {
	g := w.history.grants[held.Holder.Owner]
	if g == nil || g.process != o.process || o.wait > 0 || o.cut || g.regained >= o.began {
		return
	}
	for _, other := range w.history.ops {
		if other != o && other.process == o.process && other.key == o.key && other.uses(o, g) {
			return
		}
	}
	w.problem("I8: %s is told that %q is held by a lock of its own process that nobody uses", o, o.key)
}

// uses reports whether o may use g, or have it protected, while until runs.
func (o *op) uses(until *op, g *grant) bool {
	return o.began > 0 && (o.ended == 0 || o.ended >= until.began || errors.Is(o.err, guard.ErrUnknown) || errors.Is(o.err, lock.ErrLost))
}

// check looks at the whole history.
func (w *world) check() {
}
