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
	if l.halted {
		l.loseAtClose(g)
		return
	}
	if l.losses != nil && !g.isLocal() {
		l.unwatched = append(l.unwatched, g)
	}
	if min(g.next(), l.nextWatch()) < l.wakesAt { // seldom: leases of one ttl are due one after the other
		l.wakeWatchdog()
	}
}

// untrack takes a grant out of the watchdog's care. The caller holds l.mu.
func (l *Locker) untrack(g *grant) {
	heap.Remove(&l.grants, g.index)
	if g.stopWatch != nil {
		g.stopWatch()
		g.stopWatch = nil
	}
}

// acceptHandOver returns a lease on a grant that was handed over. If the grant was
// lost on the way, so is the lease: one caller must learn of the loss, as earlier
// holders may have shared the lock.
func (l *Locker) acceptHandOver(ctx context.Context, g *grant) *Lease {
	l.mu.Lock()
	defer l.unlock()
	g.generation++
	lost := g.state == stateLost
	lease := l.newLease(ctx, g, l.now())
	if lost {
		g.state = stateLost
		l.deferred.ended = append(l.deferred.ended, failure{g, g.cause})
		return lease
	}
	heap.Fix(&l.grants, g.index)
	l.metrics.handOvers.Add(1)
	return lease
}
