package lock

import "context"

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
