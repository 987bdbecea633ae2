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
	return l.queue(ctx, key, nil, func(_ request, t admission) (*Lease, error) {
		if t.waited && l.waitEnd(ctx) != nil { // the admission met the end of the wait
			l.queues.leave(key, false)
			return nil, l.notAdmitted(ctx, key)
		}
		return l.local(ctx, key), nil
	})
}

// TryAcquireLocal is AcquireLocal without waiting: it returns a *HeldError when
// a caller of this Locker has the key, or is about to ask for it.
func (l *Locker) TryAcquireLocal(ctx context.Context, key string) (*Lease, error) {
	return l.try(ctx, key, nil, func(request) (*Lease, error) { return l.local(ctx, key), nil })
}

// local makes the head of key's queue a holder that the engine does not know of.
func (l *Locker) local(ctx context.Context, key string) *Lease {
	now := l.now()
	g := &grant{locker: l, hold: Hold{Key: key}, place: Place{Slot: -1}, granted: now, due: never, noHandOver: true}
	g.deadline.Store(never)
	lease := g.newLease(ctx, now)
	l.queues.setGrant(key, g)
	l.track(g)
	return lease
}
