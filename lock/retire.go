package lock

import (
	"context"
	"errors"
	"time"
)

// How long the watchdog waits before it releases a retired hold again, and when
// the last release of it was not even sent.
const (
	retryRelease = time.Second
	retryUnsent  = 200 * time.Millisecond
)

// retire has the watchdog release h until it is gone. The engine may have executed
// the last request for h just now, even if it was sent long ago.
func (l *Locker) retire(h Hold, acquire bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.halted {
		return // it expires by itself
	}
	now := l.now()
	l.retired.add(&retiree{hold: h, acquire: acquire, until: now + int64(l.cfg.TTL), next: atOnce}, now)
	l.prod()
}

// releaseDue starts the releases that are due.
func (l *Locker) releaseDue(now int64) {
	l.mu.Lock()
	due := l.retired.collect(now)
	l.mu.Unlock()
	for _, r := range due {
		l.requests.Go(func() { l.releaseRetired(l.ctx, r) })
	}
}

// releaseRetired releases a retired hold that was collected or found. It reports
// whether the engine has answered.
func (l *Locker) releaseRetired(ctx context.Context, r *retiree) bool {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.RequestTimeout)
	defer cancel()
	err := ErrNoAnswer // if the engine panics
	defer func() { l.afterRelease(r, err) }()
	err = l.engine.Release(ctx, r.hold)
	return err == nil || notOurs(err)
}

// afterRelease takes in the answer to a release of r.
func (l *Locker) afterRelease(r *retiree, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Not held says nothing about an acquire that may still be on its way: it
	// can be executed after this release. Close does not wait for that.
	settled := err == nil || notOurs(err) && (!r.acquire || l.halted)
	l.retired.released(r, settled, l.now(), l.retryAfter(err))
	l.prod()
}

func (l *Locker) retryAfter(err error) time.Duration {
	if errors.Is(err, ErrNotSent) {
		return min(retryUnsent, l.cfg.TTL/10)
	}
	return min(retryRelease, l.cfg.TTL/10)
}

// settle is the end of the watchdog: it goes on releasing the retired holds
// until a release of each has been answered, it has expired, or the Locker's
// requests are cancelled.
func (l *Locker) settle() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := l.now()
		l.releaseDue(now)
		next, left := l.unsettled(now)
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

// unsettled reports whether there are retired holds that may still exist, and
// when to look at them.
func (l *Locker) unsettled(now int64) (next int64, left bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rs := &l.retired
	return min(rs.next(), rs.last+1), len(rs.all) > 0 && now <= rs.last
}
