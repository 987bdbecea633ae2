package lock

import (
	"context"

	"github.com/belaygo/belay/lock/lockengine"
)

// Err returns nil while the lease can be relied on, lockengine.ErrNotHeld when it has
// been released, and otherwise the cause with which its context ended. It looks at the
// clock, so it is right even before the watchdog has noticed.
func (l *Lease) Err() error {
	k := l.locker
	if l.released.Load() { // the context may live on, if another is nested
		return lockengine.ErrNotHeld
	}
	if l.ctx.Err() == nil {
		if k.now() < l.grant.deadline.Load() || !k.expireLease(l) {
			return nil
		}
	}
	return l.end()
}

// end returns why the lease has ended. It waits until the context has ended, too.
func (l *Lease) end() error {
	<-l.ctx.Done()
	return context.Cause(l.ctx)
}

// expireLease ends a lease that is past its deadline, if it has not ended. It returns
// false if the lease has been renewed.
func (l *Locker) expireLease(lease *Lease) bool {
	l.mu.Lock()
	defer l.unlock()
	g := lease.grant
	switch {
	case g.state != stateHeld || g.generation != lease.generation:
		return true
	case l.now() < g.deadline.Load():
		return false
	}
	l.lose(g, g.expired(), lostDeadline)
	return true
}

// expire ends a grant that is past its deadline or its limit. The caller holds
// l.mu and calls l.unlock.
func (l *Locker) expire(g *grant, now int64) {
	switch {
	case g.state == stateAbandoned:
		g.state = stateEnded
		l.untrack(g)
		l.queues.leave(g.key)
	case now >= g.deadline.Load():
		l.lose(g, g.expired(), lostDeadline)
	default:
		l.lose(g, g.lossError(ErrMaxHold, l.cfg.MaxHold.String()), lostMaxHold)
	}
}

// lose ends a grant that is held, or being handed over, and can no longer be relied
// on. The caller holds l.mu and calls l.unlock.
func (l *Locker) lose(g *grant, cause error, why lostReason) {
	l.untrack(g)
	l.protect(g)
	l.metrics.lost.add(why)
	l.deferred.lost = append(l.deferred.lost, failure{g, cause})
	handedOver := g.state == stateHandedOver
	g.state = stateLost
	if handedOver { // the caller that takes it is the head already, and will see
		g.cause = cause
		return
	}
	l.deferred.ended = append(l.deferred.ended, failure{g, cause})
}

// loseAtClose ends the lease of a holder that Close waits for no longer. The lock is
// not released, as its holder may be at work. The caller holds l.mu and calls
// l.unlock.
func (l *Locker) loseAtClose(g *grant) {
	reason := "the engine keeps it until it expires"
	if g.isLocal() {
		reason = "the engine never had it"
	}
	l.lose(g, g.lossError(errGivenUp, reason), lostClosed)
}
