package lock

import "context"

// leaseContext is a context that carries a lease. It wraps instead of adding a
// value, because every lease has one.
type leaseContext struct {
	context.Context
	lease *Lease
}

// leaseKey asks a context for the lease of one key of one Locker.
type leaseKey struct {
	locker *Locker
	key    string
}

func (c leaseContext) Value(key any) any {
	if k, ok := key.(leaseKey); ok && k.locker == c.lease.grant.locker && k.key == c.lease.grant.hold.Key {
		return c.lease
	}
	return c.Context.Value(key)
}

// nested returns another lease on the lock that ctx carries, or nil if it
// carries none that lives.
func (l *Locker) nested(ctx context.Context, key string) *Lease {
	outer, _ := ctx.Value(leaseKey{l, key}).(*Lease)
	if outer == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	g := outer.grant
	if g.state != held || g.term != outer.term || l.now() >= g.deadline.Load() {
		return nil
	}
	g.holds++
	return &Lease{grant: g, term: g.term, acquired: l.now(), ctx: outer.ctx}
}
