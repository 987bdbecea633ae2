package lock

import "context"

// reenter returns another lease on the lock that ctx carries a lease on, or nil if
// ctx carries none that lives.
func (l *Locker) reenter(ctx context.Context, key string) *Lease {
	outer, _ := ctx.Value(leaseKey{l, key}).(*Lease)
	if outer == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	g := outer.grant
	if g.state != stateHeld || g.generation != outer.generation || l.now() >= g.deadline.Load() {
		return nil
	}
	g.leases++
	return &Lease{locker: l, grant: g, generation: g.generation, acquired: l.now(), ctx: outer.ctx}
}
