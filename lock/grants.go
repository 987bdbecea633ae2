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
		l.deferred.ended = append(l.deferred.ended, failure{g, g.cause})
		return lease
	}
	heap.Fix(&l.grants, g.index)
	l.metrics.handOvers.Add(1)
	return lease
}
