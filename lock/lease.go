package lock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// A Lease is a grant as one caller has it: a context that ends with it, and a release.
// It is safe for concurrent use.
//
// One watchdog per Locker renews each grant at a third of its ttl for as long as its
// holder has it, up to Config.MaxHold. It retries after errors, and stops when the
// engine reports that the lock has another owner or none. When a lockengine.LossWatcher reports
// that a lock may be lost, the watchdog renews that lock at once.
//
// A lease can be relied on until its local deadline: the start of the last successful
// request, plus the ttl, less a margin, on the monotonic clock. At that time
// [Lease.Context] ends with a cause that matches [ErrLost], and the next caller may
// try, whether or not the engine answers.
//
// A holder whose work is done for good may mark the key with [Lease.ReleaseMarked].
// Acquires with [UnlessMarked] then fail at once with lockengine.ErrMarked.
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
	g.leases = 1
	g.limit = never
	if limit := int64(l.cfg.MaxHold); limit > 0 && limit < never-now {
		g.limit = now + limit
	}
	lease := &Lease{locker: l, grant: g, generation: g.generation, acquired: now}
	lease.ctx, g.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return lease
}

// lost returns a released lease that replaces l, whose release found the lock gone.
func (l *Lease) lost(cause error) *Lease {
	lease := &Lease{locker: l.locker, grant: l.grant, generation: l.generation, acquired: l.acquired, done: true}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(l.ctx))
	cancel(cause)
	lease.ctx = ctx
	return lease
}

// A Grant is the state of a lock, as its caller has it.
type Grant struct {
	// Token grows from holder to holder of a key, as long as the clocks of the
	// engine's servers agree.
	Token int64
	// Place is where the lock was granted.
	lockengine.Place

	Key string
	// Owner is the id that the engine knows. It is new for every grant of the
	// engine; callers that hand the lock over in memory share it.
	Owner string
	// FirstToken is the token of the engine's grant. If the lock turns out to be lost,
	// any of the callers from FirstToken to Token may have worked without a lock.
	FirstToken int64
	// TTL is how long the lock outlives its holder.
	TTL time.Duration
	// AcquiredAt is when the caller's request was sent, or when the caller got the
	// lock without one. It and Deadline follow changes of the wall clock.
	AcquiredAt time.Time
	// Deadline is until when the lease can be relied on. Renewals move it.
	Deadline time.Time
}

// Grant returns the present state of the lock, as far as it is known.
func (l *Lease) Grant() Grant {
	g, made := l.grant, l.locker.madeAt()
	return Grant{
		Token:      g.token + int64(l.generation),
		Place:      g.place,
		Key:        g.key,
		Owner:      g.owner,
		FirstToken: g.token,
		TTL:        l.locker.cfg.TTL,
		AcquiredAt: made.Add(time.Duration(l.acquired)),
		Deadline:   made.Add(time.Duration(g.deadline.Load())),
	}
}

// Context returns a context that ends with the lease. Its context.Cause is an error
// that matches ErrLost, or lockengine.ErrNotHeld after the last Release. Until the lease is
// released, an Acquire of the same key by the same Locker with this context is granted at once: see
// Locker.Acquire. Goroutines that share the context share the lock, too: it does not exclude them
// from each other.
func (l *Lease) Context() context.Context { return (*leaseContext)(l) }

// leaseContext is a lease as a context that carries it: its own, and a value.
type leaseContext Lease

func (c *leaseContext) Deadline() (deadline time.Time, ok bool) { return c.ctx.Deadline() }
func (c *leaseContext) Done() <-chan struct{}                   { return c.ctx.Done() }
func (c *leaseContext) Err() error                              { return c.ctx.Err() }

// A leaseKey is the key of a context's value: the lease on one key of one Locker.
type leaseKey struct {
	locker *Locker
	key    string
}

// anyLeaseKey is the key of a context's value: a lease, on whatever key of whatever Locker.
type anyLeaseKey struct{}

func (c *leaseContext) Value(key any) any {
	if key == (anyLeaseKey{}) {
		return (*Lease)(c)
	}
	if k, ok := key.(leaseKey); ok && k.locker == c.locker && k.key == c.grant.key {
		return (*Lease)(c)
	}
	return c.ctx.Value(key)
}

// Holds reports whether ctx carries a living lease of l on key, so that an acquire with
// ctx is granted at once.
func (l *Locker) Holds(ctx context.Context, key string) bool {
	lease := l.leaseIn(ctx, key)
	return lease != nil && lease.Err() == nil
}

// leaseIn returns the lease on key that ctx carries, or nil.
func (l *Locker) leaseIn(ctx context.Context, key string) *Lease {
	if ctx.Value(anyLeaseKey{}) == nil { // most often, and asked without an allocation
		return nil
	}
	lease, _ := ctx.Value(leaseKey{l, key}).(*Lease)
	return lease
}

// reenter returns another lease on the lock that ctx carries a lease on, or nil if
// ctx carries none that lives.
func (l *Locker) reenter(ctx context.Context, key string) *Lease {
	outer := l.leaseIn(ctx, key)
	if outer == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	g := outer.grant
	if outer.done || g.state != stateHeld || g.generation != outer.generation || l.now() >= g.deadline.Load() {
		return nil
	}
	g.leases++
	return &Lease{locker: l, grant: g, generation: g.generation, acquired: l.now(), ctx: outer.ctx}
}
