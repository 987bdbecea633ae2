package sim

import (
	"errors"
	"slices"
	"strings"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/sim/simdb"
	"github.com/belaygo/belay/notify"
)

// A spot is a failure that docs/guarantees.md says nobody reports.
type spot struct {
	name string
	// hides reports whether o could not report that its grant was lost, or, if k is
	// not nil, that it met k.
	hides func(w *world, o *op, g *grant, k *commit) bool
}

var spots = []spot{
	{early, nil},
	{"killed before it could report, or with a lock that was handed on", func(w *world, o *op, g *grant, k *commit) bool {
		for _, other := range w.history.ops {
			if other.process == o.process && other.has(failed(o, g, k)) && other.began > 0 && other.ended == 0 {
				return true
			}
		}
		return o.ended == 0
	}},
	{"an unknown commit, and the question who has the lock met a dead node", func(w *world, _ *op, g *grant, k *commit) bool {
		return k == nil && slices.ContainsFunc(w.history.users(g), func(o *op) bool { return errors.Is(o.err, guard.ErrUnknown) && o.unanswered("INSPECT", g.key) })
	}},
	{"a repeat, and neither the question nor the release reached the lock", func(_ *world, o *op, g *grant, k *commit) bool {
		key := failed(o, g, k)
		return o.repeats() && o.unanswered("INSPECT", key) && o.unanswered("RELEASE", key)
	}},
	{"the release met a dead node", func(w *world, o *op, g *grant, k *commit) bool {
		return k == nil && w.unreleased(g)
	}},
	{"a deadlock against the insert was won by a writer without the lock", func(w *world, o *op, _ *grant, k *commit) bool {
		if k == nil || !k.op.work.bare || w.plan.server != simdb.MariaDB {
			return false
		}
		for _, a := range o.attempts[:len(o.attempts)-1] {
			if strings.HasPrefix(a.last, "INSERT") {
				return true
			}
		}
		return false
	}},
	{"the connection broke before the snapshot could be read, which alone says when the row was made, or changed before a read that came after a write, and the writer could not report", func(w *world, o *op, _ *grant, k *commit) bool {
		return k != nil && w.unheard(k) && o.broke() > 0 && (k.from == 0 || len(o.rows()) > 1) && w.plan.server == simdb.MariaDB
	}},
	{"the next connection broke, too, before the rows could be read, and the writer could not report", func(w *world, o *op, _ *grant, k *commit) bool {
		return k != nil && w.unheard(k) && o.broke() > 1
	}},
	{"one key protects several rows, and who had lost the lock could not find that out, or report it", func(w *world, o *op, g *grant, k *commit) bool {
		_, conflict := errors.AsType[*dbguard.ConflictError](o.err)
		return k != nil && conflict && o.under(o.keyOf(k.row)) > 1 && (w.unheard(k) || o.unanswered("INSPECT", o.keyOf(k.row)) && w.unreleased(g)) && (!o.repeats() || len(o.attempts) > 1)
	}},
	{"one key protects several rows, and the caller met another one than the writer, who could not report", func(w *world, o *op, _ *grant, k *commit) bool {
		conflict, ok := errors.AsType[*dbguard.ConflictError](o.err)
		return ok && k != nil && !strings.HasPrefix(k.row, conflict.Table+"/") && w.unheard(k)
	}},
	{"an operation with several keys has lost several locks, and reports one of them", func(w *world, o *op, g *grant, k *commit) bool {
		if k != nil {
			return w.reportsAnother(o, o.keyOf(k.row)) || w.reportsAnother(k.op, k.op.keyOf(k.row))
		}
		return slices.ContainsFunc(w.history.users(g), func(o *op) bool { return w.reportsAnother(o, g.key) })
	}},
}

// reportsAnother reports whether o has reported the loss of another lock than that on key.
func (w *world) reportsAnother(o *op, key string) bool {
	return slices.ContainsFunc(o.heard(), func(ev notify.Event) bool {
		g := w.history.grants[ev.Owner]
		return g != nil && g.key != key && slices.Contains(o.keys(), key)
	})
}

// unheard reports whether the writer of k could not report that its lock was lost: it had
// none, or its process died, perhaps when another caller had the lock, or the release was
// not answered, perhaps that of another caller who was handed the lock.
func (w *world) unheard(k *commit) bool {
	return k.op.work.bare || k.op.process.killed > 0 || k.attempt == nil || w.unreleased(k.attempt.grants[k.op.keyOf(k.row)])
}

// unreleased reports whether the release of a lock was not answered, perhaps that of
// another caller who was handed it.
func (w *world) unreleased(g *grant) bool {
	if g == nil {
		return false
	}
	users := w.history.users(g)
	return slices.ContainsFunc(w.history.ops, func(o *op) bool {
		// It was perhaps handed on to wait for another key, or could not begin.
		passed := o.process == g.process && (o.work.other != nil || len(o.attempts) == 0)
		return (passed || slices.Contains(users, o)) && o.unanswered("RELEASE", g.key)
	})
}

// failed returns the key of the lock that was lost, or that protects the row of k for o.
func failed(o *op, g *grant, k *commit) string {
	if k != nil {
		return o.keyOf(k.row)
	}
	return g.key
}

// early is what no check expects to be reported.
const early = "a commit between the grant of the lock and the snapshot, by a holder that could not report"

// excused reports whether a blind spot hides a failure, and counts it.
func (w *world) excused(o *op, g *grant, k *commit) bool {
	for _, s := range spots {
		if s.hides != nil && s.hides(w, o, g, k) {
			w.fired = append(w.fired, s.name)
			return true
		}
	}
	return false
}
