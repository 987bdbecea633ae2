package lock

import (
	"context"
	"errors"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// How long the watchdog waits before it releases an orphan again: after an attempt, and
// after one that was not sent.
const (
	retryRelease = time.Second
	retryUnsent  = 200 * time.Millisecond
)

// addOrphan makes the watchdog release r until it is gone. The engine may have executed
// the last request for r just now, even if it was sent long ago.
func (l *Locker) addOrphan(r lockengine.Request, acquire bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.halted {
		return // it expires without a release
	}
	r.UnlessMarked = false // it was of the acquire
	now := l.now()
	l.orphans.add(&orphan{request: r, acquire: acquire, until: now + int64(l.cfg.TTL), again: dueNow}, now)
	l.wakeWatchdog()
}

// releaseDueOrphans starts the releases that are due.
func (l *Locker) releaseDueOrphans(now int64) {
	l.mu.Lock()
	due := l.orphans.collect(now)
	l.mu.Unlock()
	for _, r := range due {
		l.inBackground("release a lock", func() { l.releaseOrphan(l.ctx, r) })
	}
}

// releaseOrphan releases an orphan that was collected or found. It reports whether
// the engine has answered.
func (l *Locker) releaseOrphan(ctx context.Context, r *orphan) bool {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.RequestTimeout)
	defer cancel()
	err := lockengine.ErrNoAnswer // if the engine panics
	defer func() { l.afterRelease(r, err) }()
	err = l.engine.Release(ctx, r.request)
	return err == nil || notOurs(err)
}

// afterRelease takes in the answer to a release of r.
func (l *Locker) afterRelease(r *orphan, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// ErrNotHeld does not settle an acquire that may still be on its way: it can be
	// executed after this release. Close does not wait for that.
	settled := err == nil || notOurs(err) && (!r.acquire || l.halted)
	l.orphans.released(r, settled, l.now(), l.retryAfter(err))
	l.wakeWatchdog()
}

func (l *Locker) retryAfter(err error) time.Duration {
	if errors.Is(err, lockengine.ErrNotSent) {
		return min(retryUnsent, l.cfg.TTL/10)
	}
	return min(retryRelease, l.cfg.TTL/10)
}

// releaseRemaining is the end of the watchdog: it releases the orphans until a
// release of each has been answered, it has expired, or the Locker's requests are
// cancelled.
func (l *Locker) releaseRemaining() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := l.now()
		l.releaseDueOrphans(now)
		next, left := l.remaining(now)
		if !left {
			return
		}
		timer.Reset(time.Duration(max(0, next-l.now())))
		select {
		case <-timer.C:
		case <-l.wake:
		case <-l.ctx.Done():
			return
		}
	}
}

// remaining reports whether there are orphans that may still exist, and when to look
// at them.
func (l *Locker) remaining(now int64) (next int64, left bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rs := &l.orphans
	return min(rs.next(), rs.last+1), len(rs.all) > 0 && now <= rs.last
}
