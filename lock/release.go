package lock

import (
	"container/heap"
	"context"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/lock/lockengine"
)

// Release releases the lock in the engine, or hands it over to a caller of this
// process that waits for it. Only Config.RequestTimeout cuts it short, not the end of
// ctx. It returns
//
//   - nil when the lock was released or handed over, or an outer lease keeps it;
//   - an error that matches ErrLost when the lock was lost before;
//   - lockengine.ErrNotHeld when the lease has been released or abandoned already;
//   - another error when the engine did not answer. The Locker then continues to
//     release the lock in the background.
func (l *Lease) Release(ctx context.Context) error { return l.release(ctx, 0) }

// ReleaseMarked is Release for a holder whose work is done for good: it marks the key
// as done until keep has passed, so that acquires with UnlessMarked fail with
// lockengine.ErrMarked. The marker is set before the release, in the same round trip.
//
// ReleaseMarked does not report whether the marker was set. It is not set when the
// engine keeps no markers or cannot be reached, when keep is not positive, when an
// outer lease keeps the lock, or when the lock was lost before.
func (l *Lease) ReleaseMarked(ctx context.Context, keep time.Duration) error {
	return l.release(ctx, keep)
}

func (l *Lease) release(ctx context.Context, mark time.Duration) error {
	g := l.grant
	action, cancel := l.locker.endLease(l, mark > 0)
	if cancel != nil {
		cancel(lockengine.ErrNotHeld)
	}
	switch action {
	case actionKeep:
		return nil
	case actionHandOver:
		fail.Point("lock/handed-over")
		return nil
	case actionFree:
		return l.locker.free(ctx, g, mark)
	case actionLost: // it may be in the engine still, and its holder is done now
		if !g.isLocal() {
			l.locker.addOrphan(g.request(), false)
		}
	case actionNone:
		if l.released.Load() {
			return lockengine.ErrNotHeld
		}
	}
	return l.end()
}

// A releaseAction is the next step of a release.
type releaseAction int

const (
	actionNone     releaseAction = iota // the lease has been released or abandoned
	actionKeep                          // an outer or a nested lease keeps the grant
	actionHandOver                      // the grant was handed over in memory
	actionFree                          // release the lock in the engine, then leave the queue and call finish
	actionLost                          // the lock was lost, and its last holder is done now
)

// endLease is the first half of a release. It also returns the function that ends the
// lease's context, or nil. A key that is to be marked is not handed over.
func (l *Locker) endLease(lease *Lease, marked bool) (releaseAction, context.CancelCauseFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := lease.grant
	if lease.done || g.generation != lease.generation {
		return actionNone, nil
	}
	lease.done = true
	lease.released.Store(g.state == stateHeld)
	g.leases--
	cancel := g.cancel // the next caller has another
	switch {
	case g.state != stateHeld && g.state != stateLost:
		return actionNone, nil
	case g.leases > 0 && g.state == stateHeld:
		return actionKeep, nil
	case g.leases > 0:
		return actionNone, nil // lost, and other holders are not done
	case g.state == stateLost:
		g.state = stateEnded
		return actionLost, nil
	case !marked && g.mayHandOver(l.now(), &l.cfg) && l.queues.handOver(g.key, g):
		g.state = stateHandedOver
		g.limit = never // it was the last holder's
		heap.Fix(&l.grants, g.index)
		l.finishLocked()
		return actionHandOver, cancel
	}
	g.state = stateEnded
	l.untrack(g)
	return actionFree, cancel
}

// free releases the lock of a grant whose last lease has ended, and leaves the queue.
func (l *Locker) free(ctx context.Context, g *grant, mark time.Duration) error {
	defer l.finish()
	if g.isLocal() {
		l.queues.leave(g.key)
		return nil
	}
	defer l.queues.leave(g.key)

	settled := false
	defer func() {
		if !settled { // not answered, or the engine panicked
			l.addOrphan(g.request(), false)
		}
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.cfg.RequestTimeout)
	defer cancel()
	r := g.request()
	r.Mark = mark
	fail.Point("lock/before-release")
	err := l.engine.Release(ctx, r)
	fail.Point("lock/release-answered")
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
	locker, g := l.locker, l.grant
	locker.mu.Lock()
	if g.state != stateHeld || g.generation != l.generation || l.done {
		locker.mu.Unlock()
		return
	}
	g.state = stateAbandoned
	g.due, g.limit = never, never
	locker.protect(g)
	if g.isLocal() {
		g.deadline.Store(locker.now() + int64(locker.cfg.TTL-locker.cfg.margin()))
	}
	heap.Fix(&locker.grants, g.index)
	locker.finishLocked()
	locker.wakeWatchdog()
	cancel := g.cancel // the next caller has another
	locker.mu.Unlock()
	cancel(lockengine.ErrNotHeld)
}
