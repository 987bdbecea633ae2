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
	sending int   // releases on their way
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

// releaseDue starts the releases that are due, and reports whether there were
// any.
func (l *Locker) releaseDue(now int64) bool {
	due := l.collectRetired(now)
	for _, r := range due {
		l.requests.Go(func() { l.releaseRetired(l.ctx, r) })
	}
	return len(due) > 0
}

// collectRetired drops the retirees that have expired and returns those that
// are due.
func (l *Locker) collectRetired(now int64) (due []*retiree) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired = slices.DeleteFunc(l.retired, func(r *retiree) bool {
		return r.sending == 0 && now > r.until
	})
	for _, r := range l.retired {
		if l.releasing < maxReleasing && r.sending == 0 && r.next <= now {
			l.send(r)
			due = append(due, r)
		}
	}
	return due
}

// send counts a release of r that is about to be sent. The caller holds l.mu.
func (l *Locker) send(r *retiree) {
	r.sending++
	l.releasing++
}

// releaseRetired releases a retiree, after send. It reports whether the engine
// has answered.
func (l *Locker) releaseRetired(ctx context.Context, r *retiree) bool {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.RequestTimeout)
	defer cancel()
	err := l.engine.Release(ctx, r.hold)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.releasing--
	r.sending--
	r.next = l.now() + int64(min(retryRelease, l.cfg.TTL/10))
	l.retired = slices.DeleteFunc(l.retired, func(x *retiree) bool { return x == r })
	// Not held says nothing about an acquire that may still be on its way: it
	// can be executed after this release.
	switch {
	case err == nil:
		r.acquire = false
	case r.acquire, !errors.Is(err, ErrNotHeld):
		l.retired = append(l.retired, r)
	}
	l.prod()
	return err == nil || errors.Is(err, ErrNotHeld)
}

// exorcise releases a retired hold that is in the way of an acquire, at once.
// It reports whether the engine has answered.
func (l *Locker) exorcise(ctx context.Context, owner string) bool {
	r := l.ghost(owner)
	return r != nil && l.releaseRetired(ctx, r)
}

// ghost returns the retiree that is known to the engine as owner, for a release
// that is about to be sent, or nil.
func (l *Locker) ghost(owner string) *retiree {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.retired, func(r *retiree) bool { return r.hold.Owner == owner })
	if i < 0 {
		return nil
	}
	l.send(l.retired[i])
	return l.retired[i]
}
