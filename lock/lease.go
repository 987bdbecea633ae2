package lock

import (
	"context"
	"sync/atomic"
	"time"
)

// A Lease is a lock in the hands of one caller. It is safe for concurrent use.
type Lease struct {
	locker     *Locker
	grant      *grant
	ctx        context.Context
	acquired   int64
	generation int16
	done       bool        // Release was called; guarded by Locker.mu
	released   atomic.Bool // it was called while the lease lived
}

// newLease makes a caller the present holder of g.
func (l *Locker) newLease(ctx context.Context, g *grant, now int64) *Lease {
	g.state = stateHeld
	g.holds = 1
	g.limit = never
	if limit := int64(l.cfg.MaxHold); limit > 0 && limit < never-now {
		g.limit = now + limit
	}
	lease := &Lease{locker: l, grant: g, generation: g.generation, acquired: now}
	lease.ctx, g.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return lease
}

// Key returns the locked key.
func (l *Lease) Key() string { return l.grant.hold.Key }

// Owner returns the owner id that the engine knows. It is new for every grant
// of the engine; callers who hand the lock over in memory share it.
func (l *Lease) Owner() string { return l.grant.hold.Owner }

// Token returns a number that grows from holder to holder of a key, as long as
// the clocks of the engine's servers agree.
func (l *Lease) Token() int64 { return l.grant.token + int64(l.generation) }

// FirstToken returns the token of the first caller of this process who had the
// lock since the engine granted it. If the lock is found lost, it may have gone
// when any of the callers from FirstToken to Token had it.
func (l *Lease) FirstToken() int64 { return l.grant.token }

// Place returns where the lock was granted.
func (l *Lease) Place() Place { return l.grant.place }

// AcquiredAt returns when this caller got the lock, not before the request for
// it was sent. The wall clock is read when AcquiredAt is called, so the result
// follows a clock that was set meanwhile.
func (l *Lease) AcquiredAt() time.Time { return l.locker.at(l.acquired) }

// TTL returns how long the lock outlives its holder.
func (l *Lease) TTL() time.Duration { return l.locker.cfg.TTL }

// Deadline returns until when the lease may be believed in. Renewals move it.
// Like AcquiredAt it follows the wall clock.
func (l *Lease) Deadline() time.Time { return l.locker.at(l.grant.deadline.Load()) }

// Context returns a context that ends with the lease. context.Cause tells why:
// an error that matches ErrLost, or ErrNotHeld after the last Release. An
// Acquire of the same key by the same Locker with this context, or one derived
// from it, is granted at once: see Locker.Acquire.
func (l *Lease) Context() context.Context { return leaseContext{l.ctx, l} }

// Within returns a context that is like Context, but has the values of ctx and
// ends with ctx, too. The caller calls the function when it is done.
func (l *Lease) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	return leaseContext{ctx, l}, func() {
		stop()
		cancel(context.Canceled)
	}
}

// leaseContext is a context that carries a lease. It wraps instead of adding a
// value, because every lease has one.
type leaseContext struct {
	context.Context
	lease *Lease
}

// A leaseKey is the key of a context's value: the lease on one key of one Locker.
type leaseKey struct {
	locker *Locker
	key    string
}

func (c leaseContext) Value(key any) any {
	if k, ok := key.(leaseKey); ok && k.locker == c.lease.locker && k.key == c.lease.grant.hold.Key {
		return c.lease
	}
	return c.Context.Value(key)
}
