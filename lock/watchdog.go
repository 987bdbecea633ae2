package lock

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// watch is the watchdog: it starts renewals and releases that are due, and ends
// leases that have passed their deadline, until stop.
func (l *Locker) watch() {
	defer close(l.done)
	defer l.cancel()
	defer l.requests.Wait()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(l.round(time.Now()))
		select {
		case <-timer.C:
		case <-l.wake:
		case <-l.stop:
			l.releaseDue(time.Now())
			return
		}
	}
}

// round does what is due and returns how long until the next thing is.
func (l *Locker) round(now time.Time) time.Duration {
	for _, batch := range l.collectDue(now) {
		l.requests.Go(func() { l.renew(batch) })
	}
	l.releaseDue(now)

	l.mu.Lock()
	defer l.mu.Unlock()
	next := now.Add(time.Hour)
	if len(l.leases) > 0 {
		next = l.leases[0].next()
	}
	for _, r := range l.retired {
		if l.releasing < maxReleasing && !r.sending && r.next.Before(next) {
			next = r.next
		}
	}
	return max(0, time.Until(next))
}

func (l *Locker) releaseDue(now time.Time) {
	for _, r := range l.collectRetired(now) {
		l.requests.Go(func() { l.releaseRetired(r) })
	}
}

// collectDue ends the leases that have passed their deadline and returns those
// that are due for renewal, in batches by node, so that one slow node delays
// none but its own.
func (l *Locker) collectDue(now time.Time) map[string][]*Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	batches := make(map[string][]*Lease)
	for len(l.leases) > 0 && !l.leases[0].next().After(now) {
		lease := l.leases[0]
		if !lease.Deadline().After(now) {
			l.expire(lease)
			continue
		}
		lease.renewing = true
		heap.Fix(&l.leases, lease.index)
		batches[lease.grant.Node] = append(batches[lease.grant.Node], lease)
	}
	return batches
}

// expire ends a lease that has passed its deadline. The caller holds l.mu.
func (l *Locker) expire(lease *Lease) {
	if lease.state == abandoned {
		l.drop(lease, ended)
		return
	}
	l.loseLocked(lease, lost(lease.hold, lease.grant.Place, "not renewed in time"))
}

func (l *Locker) renew(batch []*Lease) {
	ctx, cancel := context.WithTimeout(l.ctx, l.cfg.RequestTimeout)
	defer cancel()
	holds := make([]Hold, len(batch))
	for i, lease := range batch {
		holds[i] = lease.hold
	}
	sent := time.Now()
	errs := l.engine.Renew(ctx, holds, l.cfg.TTL)
	if len(errs) != len(holds) { // nobody can tell which verdict is whose
		err := fmt.Errorf("%d verdicts on %d holds", len(errs), len(holds))
		errs = slices.Repeat([]error{err}, len(holds))
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	for i, lease := range batch {
		l.afterRenewal(lease, sent, errs[i])
	}
	l.prod()
}

// afterRenewal takes in the verdict on one lease. The caller holds l.mu.
func (l *Locker) afterRenewal(lease *Lease, sent time.Time, err error) {
	lease.renewing = false
	if lease.state != held {
		return // it ended, or was abandoned, meanwhile
	}
	switch {
	case err == nil:
		lease.renewed(sent)
	case errors.Is(err, ErrNotHeld):
		l.loseLocked(lease, lost(lease.hold, lease.grant.Place, "not ours when it was to be renewed"))
		return
	default:
		lease.due = time.Now().Add(l.cfg.TTL / 20)
		l.cfg.Logger.Warn("renew lock", "key", lease.hold.Key, "node", lease.grant.Node, "error", err)
	}
	heap.Fix(&l.leases, lease.index)
}

// keep puts a new lease under the watchdog's care.
func (l *Locker) keep(lease *Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	heap.Push(&l.leases, lease)
	if l.halted {
		l.loseLocked(lease, errors.Join(lost(lease.hold, lease.grant.Place, "the locker was closed"), ErrClosed))
	}
	if lease.index == 0 {
		l.prod()
	}
}

// lose ends a lease whose lock can no longer be believed in.
func (l *Locker) lose(lease *Lease, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lease.state == held {
		l.loseLocked(lease, cause)
	}
}

// loseLocked is lose for a held lease and a caller that holds l.mu.
func (l *Locker) loseLocked(lease *Lease, cause error) {
	l.drop(lease, gone)
	lease.cancel(cause)
	l.cfg.Logger.Warn("lock lost", "key", lease.hold.Key, "owner", lease.hold.Owner,
		"node", lease.grant.Node, "slot", lease.grant.Slot, "error", cause)
}

// drop takes a lease out of the watchdog's care and lets the next caller in.
// The caller holds l.mu.
func (l *Locker) drop(lease *Lease, s state) {
	if lease.state != abandoned { // which was counted out then
		l.finishLocked()
	}
	lease.state = s
	heap.Remove(&l.leases, lease.index)
	l.gates.leave(lease.hold.Key)
}

// end is the first half of a release. It returns the state the lease was in.
// After held, the caller must leave the gate and call finish.
func (l *Locker) end(lease *Lease) state {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := lease.state
	switch was {
	case held:
		lease.state = ended
		heap.Remove(&l.leases, lease.index)
		lease.cancel(ErrNotHeld)
	case gone:
		lease.state = ended
	}
	return was
}

func (l *Locker) abandon(lease *Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lease.state != held {
		return
	}
	lease.state = abandoned
	heap.Fix(&l.leases, lease.index)
	lease.cancel(ErrNotHeld)
	l.finishLocked()
	l.prod()
}

// prod makes the watchdog look at its lists.
func (l *Locker) prod() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
