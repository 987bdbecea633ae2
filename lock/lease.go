package lock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// A Lease is a lock that was granted. It is safe for concurrent use.
type Lease struct {
	locker   *Locker
	hold     Hold
	grant    Grant
	acquired time.Time
	ctx      context.Context
	cancel   context.CancelCauseFunc
	deadline atomic.Pointer[time.Time] // until when it may be believed in

	// Guarded by locker.mu.
	state    state
	renewing bool      // a renewal is on its way
	due      time.Time // of the next renewal
	index    int       // in locker.leases
}

type state int

const (
	held      state = iota
	abandoned       // not renewed, but nobody else of this Locker gets the key yet
	gone            // lost; the holder has not released it yet
	ended           // released, or abandoned and past its deadline
)

func newLease(ctx context.Context, l *Locker, h Hold, g Grant, sent time.Time) *Lease {
	lease := &Lease{locker: l, hold: h, grant: g, acquired: sent}
	lease.ctx, lease.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	lease.renewed(sent)
	return lease
}

// renewed notes a successful request that was sent at the given time.
func (l *Lease) renewed(sent time.Time) {
	deadline := sent.Add(l.locker.cfg.TTL - l.locker.cfg.margin())
	l.deadline.Store(&deadline)
	l.due = sent.Add(l.locker.cfg.TTL / 3)
}

// Key returns the locked key.
func (l *Lease) Key() string { return l.hold.Key }

// Owner returns the owner id, which is new for every grant.
func (l *Lease) Owner() string { return l.hold.Owner }

// Token returns a number that grows from grant to grant of a key, as long as
// the clocks of the engine's servers agree.
func (l *Lease) Token() int64 { return l.grant.Token }

// Place returns where the lock was granted.
func (l *Lease) Place() Place { return l.grant.Place }

// AcquiredAt returns when the request that got the lock was sent.
func (l *Lease) AcquiredAt() time.Time { return l.acquired }

// TTL returns how long the lock outlives its holder.
func (l *Lease) TTL() time.Duration { return l.locker.cfg.TTL }

// Deadline returns until when the lease may be believed in. Renewals move it.
func (l *Lease) Deadline() time.Time { return *l.deadline.Load() }

// Context returns a context that ends with the lease. context.Cause tells why:
// an error that matches ErrLost, or ErrNotHeld after Release.
func (l *Lease) Context() context.Context { return l.ctx }

// Err returns nil while the lease may be believed in, and afterwards the cause
// with which its context ended. It looks at the clock, so it is right even
// before the watchdog has noticed.
func (l *Lease) Err() error {
	if l.ctx.Err() == nil && time.Now().Before(l.Deadline()) {
		return nil
	}
	l.locker.lose(l, lost(l.hold, l.grant.Place, "not renewed in time"))
	return context.Cause(l.ctx)
}

// Inspect asks the engine who holds the key now.
func (l *Lease) Inspect(ctx context.Context) (Holder, error) {
	h, err := l.locker.engine.Inspect(ctx, l.hold.Key)
	if err != nil {
		return Holder{}, fmt.Errorf("inspect lock %q: %w", l.hold.Key, err)
	}
	return h, nil
}

// Release frees the lock. It is not cut short by ctx, only by the Locker's
// request timeout. It returns
//
//   - nil when the lock was freed;
//   - an error that matches ErrLost when the lock had gone before;
//   - ErrNotHeld when the lease has been released or abandoned already;
//   - another error when the engine did not answer. The Locker then goes on
//     releasing the lock in the background.
func (l *Lease) Release(ctx context.Context) error {
	k := l.locker
	switch k.end(l) {
	case held:
	case gone: // it may be in the engine still, and its holder is done now
		k.retire(l.hold, time.Now(), false)
		return context.Cause(l.ctx)
	default:
		return context.Cause(l.ctx)
	}
	defer k.finish()
	defer k.gates.leave(l.hold.Key)

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.cfg.RequestTimeout)
	defer cancel()
	sent := time.Now()
	err := k.engine.Release(ctx, l.hold)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNotHeld):
		return lost(l.hold, l.grant.Place, "gone when it was released")
	}
	k.retire(l.hold, sent, false)
	return fmt.Errorf("release lock %q: %w", l.hold.Key, err)
}

// Abandon stops renewing the lock without releasing it, for a holder that does
// not know whether its work took effect. No caller of this Locker gets the key
// before the lease's deadline.
func (l *Lease) Abandon() { l.locker.abandon(l) }

// holder tells what is known about the holder of a lease, which may be nil.
func (l *Lease) holder() Holder {
	if l == nil {
		return Holder{Place: Place{Slot: -1}}
	}
	return Holder{Owner: l.hold.Owner, TTL: max(0, time.Until(l.Deadline())), Place: l.grant.Place}
}
