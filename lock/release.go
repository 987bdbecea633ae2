package lock

import (
	"context"
	"fmt"
	"time"
)

// Release releases the lock in the engine, or hands it over to a caller of this
// process that waits for it. The end of ctx does not cut it short, only
// Config.RequestTimeout does. It returns
//
//   - nil when the lock was released or handed over, or an outer lease keeps it;
//   - an error that matches ErrLost when the lock was lost before;
//   - ErrNotHeld when the lease has been released or abandoned already;
//   - another error when the engine did not answer. The Locker then goes on
//     releasing the lock in the background.
func (l *Lease) Release(ctx context.Context) error { return l.release(ctx, 0) }

// ReleaseMarked is Release for a holder whose work is done for good: it marks the key
// as done until keep has passed, so that acquires with UnlessMarked fail with
// ErrMarked. The marker is set before the release, in the same round trip.
//
// A marker only saves work, so ReleaseMarked does not report whether it was set. It
// is not set when the engine keeps no markers, when keep is not positive, when an
// outer lease keeps the lock, when the lock was lost before, or when the engine can't
// be reached.
func (l *Lease) ReleaseMarked(ctx context.Context, keep time.Duration) error {
	return l.release(ctx, keep)
}

func (l *Lease) release(ctx context.Context, mark time.Duration) error {
	g := l.grant
	switch l.locker.endLease(l, mark > 0) {
	case actionKeep, actionHandOver:
		return nil
	case actionFree:
		return l.locker.free(ctx, g, mark)
	case actionLost: // it may be in the engine still, and its holder is done now
		if !g.isLocal() {
			l.locker.addOrphan(g.hold(), false)
		}
	case actionNone:
		if l.released.Load() {
			return ErrNotHeld
		}
	}
	return l.end()
}

// free releases the lock of a grant whose last lease has ended, and leaves the queue.
func (l *Locker) free(ctx context.Context, g *grant, mark time.Duration) error {
	defer l.finish()
	if g.isLocal() {
		l.queues.leave(g.key, false)
		return nil
	}
	defer l.queues.leave(g.key, true)

	settled := false
	defer func() {
		if !settled { // not answered, or the engine panicked
			l.addOrphan(g.hold(), false)
		}
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.cfg.RequestTimeout)
	defer cancel()
	h := g.hold()
	h.Mark = mark
	err := l.engine.Release(ctx, h)
	settled = err == nil || notOurs(err)
	switch {
	case err == nil:
		return nil
	case settled:
		l.metrics.lost.add(lostReleased)
		return g.lossError(ErrLost, reason("gone when it was released", err))
	}
	return fmt.Errorf("release lock %q: %w", g.key, err)
}

// Abandon stops renewing the lock without releasing it. It is for a holder that does
// not know whether its work took effect. No caller of this Locker gets the key before
// the lease's deadline.
func (l *Lease) Abandon() {
	if cancel := l.locker.abandon(l); cancel != nil {
		cancel(ErrNotHeld)
	}
}
