package lock

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/belaygo/belay/internal/fail"
)

// maxBatch is how many grants are renewed by one call of the engine.
const maxBatch = 512

// watch is the watchdog: it starts renewals and releases that are due, and ends
// grants that have passed their deadline, until stop.
func (l *Locker) watch() {
	defer close(l.done)
	defer l.requests.Wait()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(l.round(l.now()))
		select {
		case <-timer.C:
		case <-l.wake:
		case <-l.stop:
			l.releaseRemaining()
			close(l.settled)
			return
		}
	}
}

// round does what is due and returns how long until the next thing is.
func (l *Locker) round(now int64) time.Duration {
	for _, due := range l.byNode(l.collectDue(now)) {
		for batch := range slices.Chunk(due, maxBatch) {
			l.requests.Go(func() { l.renew(batch) })
		}
	}
	l.releaseDueOrphans(now)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweepProtected(now)
	next := now + int64(time.Hour)
	if len(l.grants) > 0 {
		next = l.grants[0].next()
	}
	l.wakesAt = min(next, l.orphans.next())
	return time.Duration(max(0, l.wakesAt-l.now()))
}

// collectDue ends the grants that have passed their deadline and returns those
// that are due for renewal. It takes those along that will be due soon.
func (l *Locker) collectDue(now int64) (due []*grant) {
	l.mu.Lock()
	defer l.unlock()
	soon := now
	for len(l.grants) > 0 {
		g := l.grants[0]
		if now >= g.deadline.Load() || now >= g.limit {
			l.expire(g, now)
			continue
		}
		if g.due > soon {
			break
		}
		soon = now + int64(l.cfg.TTL/60)
		g.due = never
		heap.Fix(&l.grants, g.index)
		due = append(due, g)
	}
	return due
}

// byNode sorts grants by the node that has them, so that a slow node delays none
// but its own: if the engine is a Locator, by the one that has them now.
func (l *Locker) byNode(due []*grant) map[string][]*grant {
	if len(due) == 0 {
		return nil
	}
	locator, _ := l.engine.(Locator)
	nodes := make(map[string][]*grant)
	for _, g := range due {
		node := g.place.Node
		if locator != nil {
			node = locator.Locate(g.key).Node
		}
		nodes[node] = append(nodes[node], g)
	}
	return nodes
}

func (l *Locker) renew(batch []*grant) {
	ctx, cancel := context.WithTimeout(l.ctx, l.cfg.RequestTimeout)
	defer cancel()
	rs := make([]Request, len(batch))
	for i, g := range batch {
		rs[i] = g.request()
	}
	sent := l.now()
	var errs []error
	defer func() { l.afterRenewals(batch, sent, errs) }() // even if the engine ends the goroutine
	fail.Point("lock/before-renewal")
	errs = l.engine.Renew(ctx, rs, l.cfg.TTL)
	fail.Point("lock/renewal-answered")
}

// afterRenewals takes in the answers for a batch.
func (l *Locker) afterRenewals(batch []*grant, sent int64, errs []error) {
	if len(errs) != len(batch) { // it is unknown which answer is whose
		err := fmt.Errorf("%d answers to %d requests", len(errs), len(batch))
		errs = slices.Repeat([]error{err}, len(batch))
	}
	l.mu.Lock()
	defer l.unlock()
	for i, g := range batch {
		l.afterRenewal(g, sent, errs[i])
	}
	l.wakeWatchdog()
}

// afterRenewal takes in the answer for one grant. The caller holds l.mu and calls
// l.unlock.
func (l *Locker) afterRenewal(g *grant, sent int64, err error) {
	if g.state != stateHeld && g.state != stateHandedOver {
		return // it ended, or was abandoned, meanwhile
	}
	switch {
	case err == nil:
		g.renewed(sent, &l.cfg)
		g.lastRenewalFailed = false
		l.metrics.renewals.Add(1)
	case notOurs(err):
		l.lose(g, g.lossError(ErrLost, reason("not ours when it was to be renewed", err)), lostNotOurs)
		return
	default:
		g.renewalFailed, g.lastRenewalFailed = true, true
		g.due = l.now() + int64(l.cfg.TTL/20)
		l.metrics.renewalsFailed.Add(1)
		l.deferred.notRenewed = append(l.deferred.notRenewed, failure{g, err})
	}
	heap.Fix(&l.grants, g.index)
}
