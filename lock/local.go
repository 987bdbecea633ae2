package lock

import "context"

// AcquireLocal keeps the callers of this Locker away from key, and nobody else:
// the engine is not asked. It is for work that must go on while the engine is
// out of reach. It waits until ctx ends; as to leases in ctx see Acquire.
//
// The lease has no owner id and no token, and is not renewed: only Config.MaxHold
// limits it.
// Abandoned, it keeps the key for as long as an acquired one would. A caller who
// is handed over a lock of the engine's, or has one already, gets a lease on that;
// and an Acquire inside a lease without an owner id gets another such lease.
func (l *Locker) AcquireLocal(ctx context.Context, key string) (*Lease, error) {
	return l.acquire(ctx, request{key: key, local: true})
}

// TryAcquireLocal is AcquireLocal without waiting: it returns a *HeldError when
// a caller of this Locker has the key, or is about to ask for it.
func (l *Locker) TryAcquireLocal(ctx context.Context, key string) (*Lease, error) {
	return l.acquire(ctx, request{key: key, local: true, try: true})
}

// acquireLocal makes the head of the key's queue a holder that the engine does not
// know of.
func (l *Locker) acquireLocal(ctx context.Context, r request, a admission) (*Lease, error) {
	if a.waited && l.waitEnd(ctx) != nil { // the admission met the end of the wait
		l.queues.leave(r.key, false)
		l.finish()
		return nil, l.notAdmitted(ctx, r.key)
	}
	now := l.now()
	g := &grant{hold: Hold{Key: r.key}, place: Place{Slot: -1}, granted: now, due: never, noHandOver: true}
	g.deadline.Store(never)
	lease := l.newLease(ctx, g, now)
	l.queues.setGrant(r.key, g)
	l.track(g)
	return lease, nil
}
