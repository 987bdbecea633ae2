package lock

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/lock/lockengine"
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
		timer.Reset(l.roundAgain())
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

// roundPause is the time until the next round after one that panicked.
const roundPause = 10 * time.Millisecond

// roundAgain is round. A panic of the engine or the logger does not end the watchdog.
func (l *Locker) roundAgain() (next time.Duration) {
	next = roundPause
	_ = background.Do(l.cfg.Logger, "look at locks", func() error {
		next = l.round(l.now())
		return nil
	})
	return next
}

// inBackground runs one request of the watchdog.
func (l *Locker) inBackground(what string, request func()) {
	l.requests.Go(func() {
		_ = background.Do(l.cfg.Logger, what, func() error {
			request()
			return nil
		})
	})
}

// round does the due tasks and returns the time until the next one.
func (l *Locker) round(now int64) time.Duration {
	for _, due := range l.byNode(l.collectDue(now)) {
		for batch := range slices.Chunk(due, maxBatch) {
			l.inBackground("renew locks", func() { l.renew(batch) })
		}
	}
	l.releaseDueOrphans(now)
	l.watchLosses(now)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweepProtected(now)
	next := now + int64(time.Hour)
	if len(l.grants) > 0 {
		next = l.grants[0].next()
	}
	l.wakesAt = min(next, l.orphans.next(), l.nextWatch())
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
	locator, _ := l.engine.(lockengine.Locator)
	nodes := make(map[string][]*grant)
	for _, g := range due {
		node := l.nodeOf(g, locator)
		nodes[node] = append(nodes[node], g)
	}
	return nodes
}

// nodeOf returns the node that has g now or, if that is unknown, the one that granted
// it.
func (l *Locker) nodeOf(g *grant, locator lockengine.Locator) (node string) {
	node = g.place.Node
	if locator == nil {
		return node
	}
	_ = background.Do(l.cfg.Logger, "locate a lock", func() error {
		node = locator.Locate(g.key).Node
		return nil
	})
	return node
}

func (l *Locker) renew(batch []*grant) {
	ctx, cancel := context.WithTimeout(l.ctx, l.cfg.RequestTimeout)
	defer cancel()
	rs := make([]lockengine.Request, len(batch))
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
	if len(errs) != len(batch) { // the answers cannot be matched with the requests
		err := fmt.Errorf("%d answers to %d requests", len(errs), len(batch))
		errs = slices.Repeat([]error{err}, len(batch))
	}
	l.mu.Lock()
	defer l.unlock()
	for i, g := range batch {
		l.afterRenewal(g, sent, errs[i])
	}
	l.renewSuspects()
	l.wakeWatchdog()
}

// afterRenewal takes in the answer for one grant. The caller holds l.mu and calls
// l.unlock.
func (l *Locker) afterRenewal(g *grant, sent int64, err error) {
	if !g.isRenewed() {
		return // it has ended, or was abandoned
	}
	switch {
	case err == nil:
		g.renewed(sent, &l.cfg)
		g.lastRenewalFailed = false
		l.metrics.renewals.Add(1)
		l.stillOurs(g, sent)
	case notOurs(err):
		why := lostNotOurs
		if g.suspected != 0 {
			why = lostPushed
		}
		l.lose(g, g.lossError(ErrLost, reason("not ours when it was to be renewed", err)), why)
		return
	default:
		g.renewalFailed, g.lastRenewalFailed = true, true
		g.due = l.now() + int64(l.cfg.TTL/20)
		l.metrics.renewalsFailed.Add(1)
		l.deferred.notRenewed = append(l.deferred.notRenewed, failure{g, err})
	}
	heap.Fix(&l.grants, g.index)
}
