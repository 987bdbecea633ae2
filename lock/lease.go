package lock

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// A Lease is a lock in the hands of one caller. It is safe for concurrent use.
type Lease struct {
	grant    *grant
	ctx      context.Context
	acquired int64
	term     int16
	done     bool        // Release was called; guarded by Locker.mu
	released atomic.Bool // it was called while the lease lived
}

// Key returns the locked key.
func (l *Lease) Key() string { return l.grant.hold.Key }

// Owner returns the owner id that the engine knows. It is new for every grant
// of the engine; callers who hand the lock over in memory share it.
func (l *Lease) Owner() string { return l.grant.hold.Owner }

// Token returns a number that grows from holder to holder of a key, as long as
// the clocks of the engine's servers agree.
func (l *Lease) Token() int64 { return l.grant.token + int64(l.term) }

// FirstToken returns the token of the first caller of this process who had the
// lock since the engine granted it. If the lock is found lost, it may have gone
// when any of the callers from FirstToken to Token had it.
func (l *Lease) FirstToken() int64 { return l.grant.token }

// Place returns where the lock was granted.
func (l *Lease) Place() Place { return l.grant.place }

// AcquiredAt returns when this caller got the lock, not before the request for
// it was sent. The wall clock is read when AcquiredAt is called, so the result
// follows a clock that was set meanwhile.
func (l *Lease) AcquiredAt() time.Time { return l.grant.locker.at(l.acquired) }

// TTL returns how long the lock outlives its holder.
func (l *Lease) TTL() time.Duration { return l.grant.locker.cfg.TTL }

// Deadline returns until when the lease may be believed in. Renewals move it.
// Like AcquiredAt it follows the wall clock.
func (l *Lease) Deadline() time.Time { return l.grant.locker.at(l.grant.deadline.Load()) }

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

// Err returns nil while the lease may be believed in, ErrNotHeld when it has
// been released, and otherwise the cause with which its context ended. It looks
// at the clock, so it is right even before the watchdog has noticed.
func (l *Lease) Err() error {
	k := l.grant.locker
	if l.released.Load() { // the context may live on, if another is nested
		return ErrNotHeld
	}
	if l.ctx.Err() == nil {
		if k.now() < l.grant.deadline.Load() || !k.outlived(l) {
			return nil
		}
	}
	return l.end()
}

// end returns why the lease has ended. Who ended it may be about to say so.
func (l *Lease) end() error {
	<-l.ctx.Done()
	return context.Cause(l.ctx)
}

// Inspect asks the engine who holds the key now.
func (l *Lease) Inspect(ctx context.Context) (Holder, error) {
	return l.grant.locker.Inspect(ctx, l.grant.hold.Key)
}

// Release frees the lock, or hands it to a caller of this process who waits for
// it. It is not cut short by ctx, only by the Locker's request timeout. It
// returns
//
//   - nil when the lock was freed or handed over, or an outer lease keeps it;
//   - an error that matches ErrLost when the lock had gone before;
//   - ErrNotHeld when the lease has been released or abandoned already;
//   - another error when the engine did not answer. The Locker then goes on
//     releasing the lock in the background.
func (l *Lease) Release(ctx context.Context) error { return l.release(ctx, 0) }

// ReleaseMarked is Release for a holder whose work is done for good: it marks
// the key as done until keep has passed, so that acquires with UnlessMarked fail
// with ErrMarked. It goes with the release in one round trip, before it.
//
// A marker only saves work, so ReleaseMarked does not tell whether it was set.
// It is not when the engine is no Marker, when keep is not positive, when an
// outer lease keeps the lock, when the lock had gone before, and when the engine
// is out of reach.
func (l *Lease) ReleaseMarked(ctx context.Context, keep time.Duration) error {
	return l.release(ctx, keep)
}

func (l *Lease) release(ctx context.Context, mark time.Duration) error {
	g := l.grant
	k := g.locker
	switch k.end(l, mark > 0) {
	case keep, handOver:
		return nil
	case free:
	case lostBefore: // it may be in the engine still, and its holder is done now
		if !g.local() {
			k.retire(g.hold, false)
		}
		return l.end()
	default:
		if l.released.Load() {
			return ErrNotHeld
		}
		return l.end()
	}
	defer k.finish()
	if g.local() {
		k.gates.leave(g.hold.Key, false)
		return nil
	}
	defer k.gates.leave(g.hold.Key, true)

	settled := false
	defer func() {
		if !settled { // not answered, or the engine panicked
			k.retire(g.hold, false)
		}
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.cfg.RequestTimeout)
	defer cancel()
	err := k.giveBack(ctx, g.hold, mark)
	settled = err == nil || notOurs(err)
	switch {
	case err == nil:
		return nil
	case settled:
		k.metrics.lost.add(lostReleased)
		return g.lost(ErrLost, reason("gone when it was released", err))
	}
	return fmt.Errorf("release lock %q: %w", g.hold.Key, err)
}

// Abandon stops renewing the lock without releasing it, for a holder that does
// not know whether its work took effect. No caller of this Locker gets the key
// before the lease's deadline.
func (l *Lease) Abandon() {
	if cancel := l.grant.locker.abandon(l); cancel != nil {
		cancel(ErrNotHeld)
	}
}

// holder tells what is known about the holder of a grant, which may be nil.
func (g *grant) holder() Holder {
	if g == nil || g.local() {
		return Holder{Place: Place{Slot: -1}}
	}
	left := time.Duration(g.deadline.Load() - g.locker.now())
	return Holder{Owner: g.hold.Owner, TTL: max(0, left), Place: g.place}
}
