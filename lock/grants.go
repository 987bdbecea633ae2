package lock

import (
	"container/heap"
	"context"
)

// track puts a new grant under the watchdog's care.
func (l *Locker) track(g *grant) {
	l.mu.Lock()
	defer l.unlock()
	heap.Push(&l.grants, g)
	switch {
	case l.halted:
		l.loseAtClose(g)
	case g.next() < l.wakesAt: // seldom: leases of one ttl are due one after the other
		l.wakeWatchdog()
	}
}

// acceptHandOver returns a lease on a grant that was handed over. If the grant was
// lost on the way, so is the lease: one caller must learn of the loss, as those who
// had the lock before may have shared it.
func (l *Locker) acceptHandOver(ctx context.Context, g *grant) *Lease {
	l.mu.Lock()
	defer l.unlock()
	g.generation++
	lost := g.state == stateLost
	lease := l.newLease(ctx, g, l.now())
	if lost {
		g.state = stateLost
		l.deferred.ended = append(l.deferred.ended, leaseEnd{g.cancel, g.cause, g.key})
		return lease
	}
	heap.Fix(&l.grants, g.index)
	l.metrics.handOvers.Add(1)
	return lease
}

// A releaseAction is what a release has to do.
type releaseAction int

const (
	actionNone     releaseAction = iota // the lease has been released or abandoned
	actionKeep                          // an outer or a nested lease keeps the grant
	actionHandOver                      // done in memory
	actionFree                          // release it in the engine, then leave the queue and call finish
	actionLost                          // the lock was lost, and its last holder is done now
)

// endLease is the first half of a release. A key that is to be marked is not handed
// over.
func (l *Locker) endLease(lease *Lease, marked bool) releaseAction {
	d, cancel := l.endLeaseLocked(lease, marked)
	if cancel != nil {
		cancel(ErrNotHeld)
	}
	return d
}

func (l *Locker) endLeaseLocked(lease *Lease, marked bool) (releaseAction, context.CancelCauseFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := lease.grant
	if lease.done || g.generation != lease.generation {
		return actionNone, nil
	}
	lease.done = true
	lease.released.Store(g.state == stateHeld)
	g.holds--
	cancel := g.cancel // the next caller has another
	switch {
	case g.state != stateHeld && g.state != stateLost:
		return actionNone, nil
	case g.holds > 0 && g.state == stateHeld:
		return actionKeep, nil
	case g.holds > 0:
		return actionNone, nil // lost, with holders who are not done
	case g.state == stateLost:
		g.state = stateEnded
		return actionLost, nil
	case !marked && g.mayHandOver(l.now(), &l.cfg) && l.queues.handOver(g.key, g):
		g.state = stateHandedOver
		g.limit = never // it was the last holder's
		heap.Fix(&l.grants, g.index)
		l.finishLocked()
		return actionHandOver, cancel
	}
	g.state = stateEnded
	heap.Remove(&l.grants, g.index)
	return actionFree, cancel
}

// abandon returns what ends the context of the lease, or nil.
func (l *Locker) abandon(lease *Lease) context.CancelCauseFunc {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := lease.grant
	if g.state != stateHeld || g.generation != lease.generation || lease.done {
		return nil
	}
	g.state = stateAbandoned
	g.due, g.limit = never, never
	l.protect(g)
	if g.isLocal() {
		g.deadline.Store(l.now() + int64(l.cfg.TTL-l.cfg.margin()))
	}
	heap.Fix(&l.grants, g.index)
	l.finishLocked()
	l.wakeWatchdog()
	return g.cancel
}
