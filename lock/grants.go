package lock

import (
	"container/heap"
	"context"
)

// keep puts a new grant under the watchdog's care.
func (l *Locker) keep(g *grant) {
	l.mu.Lock()
	defer l.unlock()
	heap.Push(&l.grants, g)
	switch {
	case l.halted:
		l.giveUp(g)
	case g.next() < l.wakesAt: // seldom: leases of one ttl are due one after the other
		l.prod()
	}
}

// adopt takes a grant that was handed over. If it was lost on the way, so is the
// lease: somebody must be told, for those who had it before may have shared it.
func (l *Locker) adopt(ctx context.Context, g *grant) *Lease {
	l.mu.Lock()
	defer l.unlock()
	g.term++
	lost := g.state == gone
	lease := g.takeBy(ctx, l.now())
	if lost {
		g.state = gone
		l.news.ended = append(l.news.ended, ending{g.cancel, g.cause, g.hold.Key})
		return lease
	}
	heap.Fix(&l.grants, g.index)
	l.metrics.handOvers.Add(1)
	return lease
}

// duty is what a release has to do.
type duty int

const (
	nothing    duty = iota // the lease has been released or abandoned
	keep                   // an outer or a nested lease keeps the hold
	handOver               // done in memory
	free                   // ask the engine, then leave the gate and call finish
	lostBefore             // the lock was lost, and its last holder is done now
)

// end is the first half of a release, which is not done in memory if the key is
// to be marked.
func (l *Locker) end(lease *Lease, marked bool) duty {
	d, cancel := l.endLocked(lease, marked)
	if cancel != nil {
		cancel(ErrNotHeld)
	}
	return d
}

func (l *Locker) endLocked(lease *Lease, marked bool) (duty, context.CancelCauseFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := lease.grant
	if lease.done || g.term != lease.term {
		return nothing, nil
	}
	lease.done = true
	lease.released.Store(g.state == held)
	g.holds--
	cancel := g.cancel // whom the lock is passed to has another
	switch {
	case g.state != held && g.state != gone:
		return nothing, nil
	case g.holds > 0 && g.state == held:
		return keep, nil
	case g.holds > 0:
		return nothing, nil // lost, with holders who are not done
	case g.state == gone:
		g.state = ended
		return lostBefore, nil
	case !marked && g.mayPass(l.now()) && l.gates.pass(g.hold.Key, g):
		g.state = passing
		g.limit = never // it was the last holder's
		heap.Fix(&l.grants, g.index)
		l.finishLocked()
		return handOver, cancel
	}
	g.state = ended
	heap.Remove(&l.grants, g.index)
	return free, cancel
}

// abandon returns what ends the context of the lease, or nil.
func (l *Locker) abandon(lease *Lease) context.CancelCauseFunc {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := lease.grant
	if g.state != held || g.term != lease.term || lease.done {
		return nil
	}
	g.state = abandoned
	g.due, g.limit = never, never
	l.spare(g)
	if g.local() {
		g.deadline.Store(l.now() + int64(l.cfg.TTL-l.cfg.margin()))
	}
	heap.Fix(&l.grants, g.index)
	l.finishLocked()
	l.prod()
	return g.cancel
}
