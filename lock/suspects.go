package lock

import (
	"container/heap"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/background"
)

// The loss of a grant is watched when it is watchAge old at the latest, watchSoon at
// the earliest: most leases end before that, and cost nothing.
const (
	watchAge  = int64(100 * time.Millisecond)
	watchSoon = watchAge / 2
)

// nextWatch is when the next grant is to be watched. The caller holds l.mu.
func (l *Locker) nextWatch() int64 {
	if len(l.unwatched) == 0 {
		return never
	}
	return l.unwatched[0].granted + watchAge
}

// watchLosses watches the grants that are old enough.
func (l *Locker) watchLosses(now int64) {
	for _, g := range l.collectUnwatched(now) {
		var stop func()
		_ = background.Do(l.cfg.Logger, "watch a lock", func() error {
			stop = l.losses.WatchLoss(g.request(), func() { l.suspect(g) })
			return nil
		})
		if stop != nil && !l.watched(g, stop) {
			stop()
		}
	}
}

// collectUnwatched returns the grants that are due to be watched.
func (l *Locker) collectUnwatched(now int64) (due []*grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.nextWatch() > now {
		return nil
	}
	n := 0
	for n < len(l.unwatched) && l.unwatched[n].granted+watchSoon <= now {
		if g := l.unwatched[n]; g.isRenewed() {
			due = append(due, g)
		}
		n++
	}
	clear(l.unwatched[:n])
	l.unwatched = l.unwatched[n:]
	return due
}

// watched records stop, which ends the watch of g. It returns false if g has ended.
func (l *Locker) watched(g *grant, stop func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !g.isRenewed() {
		return false
	}
	g.stopWatch = stop
	return true
}

// suspect renews g at once, as the engine may have lost it. If it is being renewed, it is
// renewed again after that.
func (l *Locker) suspect(g *grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !g.isRenewed() {
		return
	}
	if g.suspected == 0 && g.due != never {
		l.suspects = append(l.suspects, g)
	}
	g.suspected = l.now()
	l.renewSuspects()
}

// stillOurs notes that g was not lost when a renewal was sent. If it was reported since,
// it stays a suspect. The caller holds l.mu, and calls renewSuspects at the end.
func (l *Locker) stillOurs(g *grant, sent int64) {
	if g.suspected <= sent {
		g.suspected = 0
		return
	}
	l.suspects = append(l.suspects, g)
}

// renewSuspects starts the renewal of the next suspects. There is one batch at a time:
// somebody may have deleted all locks. The caller holds l.mu.
func (l *Locker) renewSuspects() {
	if l.renewing || l.halted || len(l.suspects) == 0 {
		return
	}
	l.renewing = true
	batch := l.nextSuspects()
	l.inBackground("renew suspected locks", func() {
		defer l.suspectsRenewed()
		var nodes sync.WaitGroup
		for _, due := range l.byNode(batch) {
			nodes.Go(func() {
				_ = background.Do(l.cfg.Logger, "renew suspected locks", func() error {
					l.renew(due)
					return nil
				})
			})
		}
		nodes.Wait()
	})
}

func (l *Locker) suspectsRenewed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewing = false
	l.renewSuspects()
}

// nextSuspects takes the next batch of suspects, but for those that are being renewed
// since they became suspects. The caller holds l.mu.
func (l *Locker) nextSuspects() (batch []*grant) {
	n := min(len(l.suspects), maxBatch)
	for _, g := range l.suspects[:n] {
		if g.isRenewed() && g.due != never {
			g.due = never
			heap.Fix(&l.grants, g.index)
			batch = append(batch, g)
		}
	}
	clear(l.suspects[:n])
	l.suspects = l.suspects[n:]
	return batch
}
