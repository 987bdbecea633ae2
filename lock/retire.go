package lock

import (
	"context"
	"errors"
	"slices"
	"time"
)

// retryRelease is how long the watchdog waits before it releases a retired hold
// again.
const retryRelease = time.Second

// maxReleasing is how many retired holds are released at a time. An engine that
// was away for a while must not be run over when it comes back.
const maxReleasing = 64

// A retiree is a hold that nobody uses any more and that may exist in the
// engine: the answer to its acquire or its release never came.
type retiree struct {
	hold    Hold
	acquire bool  // its acquire is what was not answered
	until   int64 // by then it has expired
	next    int64 // when to release it again
	sending bool  // a release is on its way
}

// retire has the watchdog release h until it is gone. The last request that
// could have prolonged it was sent at the given time.
func (l *Locker) retire(h Hold, sent int64, acquire bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retireLocked(h, sent, acquire)
}

func (l *Locker) retireLocked(h Hold, sent int64, acquire bool) {
	if l.halted {
		return // it expires by itself
	}
	r := &retiree{hold: h, acquire: acquire, until: sent + int64(l.cfg.TTL), next: l.now()}
	l.retired = append(l.retired, r)
	l.prod()
}

func (l *Locker) releaseDue(now int64) {
	for _, r := range l.collectRetired(now) {
		l.requests.Go(func() { l.releaseRetired(l.ctx, r) })
	}
}

// collectRetired drops the retirees that have expired and returns those that
// are due.
func (l *Locker) collectRetired(now int64) (due []*retiree) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired = slices.DeleteFunc(l.retired, func(r *retiree) bool {
		return !r.sending && now > r.until
	})
	for _, r := range l.retired {
		if l.releasing < maxReleasing && !r.sending && r.next <= now {
			r.sending = true
			l.releasing++
			due = append(due, r)
		}
	}
	return due
}

// releaseRetired releases a retiree that was marked as being sent. It reports
// whether the engine has answered.
func (l *Locker) releaseRetired(ctx context.Context, r *retiree) bool {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.RequestTimeout)
	defer cancel()
	err := l.engine.Release(ctx, r.hold)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.releasing--
	r.sending = false
	r.next = l.now() + int64(min(retryRelease, l.cfg.TTL/10))
	l.retired = slices.DeleteFunc(l.retired, func(x *retiree) bool { return x == r })
	// Not held says nothing about an acquire that may still be on its way: it
	// can be executed after this release.
	if err != nil && (r.acquire || !errors.Is(err, ErrNotHeld)) {
		l.retired = append(l.retired, r)
	}
	l.prod()
	return err == nil || errors.Is(err, ErrNotHeld)
}

// exorcise releases a retired hold that is in the way of an acquire, at once.
// It reports whether the engine has answered.
func (l *Locker) exorcise(ctx context.Context, owner string) bool {
	l.mu.Lock()
	i := slices.IndexFunc(l.retired, func(r *retiree) bool { return r.hold.Owner == owner && !r.sending })
	if i < 0 {
		l.mu.Unlock()
		return false
	}
	r := l.retired[i]
	r.sending = true
	l.releasing++
	l.mu.Unlock()
	return l.releaseRetired(ctx, r)
}
