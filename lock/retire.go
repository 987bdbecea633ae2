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
	acquire bool      // its acquire is what was not answered
	until   time.Time // by then it has expired
	next    time.Time // of the next release
	sending bool      // a release is on its way
}

// retire has the watchdog release h until it is gone. The last request that
// could have prolonged it was sent at the given time.
func (l *Locker) retire(h Hold, sent time.Time, acquire bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.halted {
		return // it expires by itself
	}
	now := time.Now()
	r := &retiree{hold: h, acquire: acquire, until: sent.Add(l.cfg.TTL), next: now}
	l.retired = append(l.retired, r)
	l.prod()
}

// collectRetired drops the retirees that have expired and returns those that
// are due.
func (l *Locker) collectRetired(now time.Time) (due []*retiree) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired = slices.DeleteFunc(l.retired, func(r *retiree) bool {
		return !r.sending && now.After(r.until)
	})
	for _, r := range l.retired {
		if l.releasing < maxReleasing && !r.sending && !r.next.After(now) {
			r.sending = true
			l.releasing++
			due = append(due, r)
		}
	}
	return due
}

func (l *Locker) releaseRetired(r *retiree) {
	ctx, cancel := context.WithTimeout(l.ctx, l.cfg.RequestTimeout)
	defer cancel()
	err := l.engine.Release(ctx, r.hold)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.releasing--
	r.sending = false
	r.next = time.Now().Add(min(retryRelease, l.cfg.TTL/10))
	l.retired = slices.DeleteFunc(l.retired, func(x *retiree) bool { return x == r })
	// Not held says nothing about an acquire that may still be on its way: it
	// can be executed after this release.
	if err != nil && (r.acquire || !errors.Is(err, ErrNotHeld)) {
		l.retired = append(l.retired, r)
	}
	l.prod()
}
