package lock

import (
	"context"
	"errors"
	"slices"
	"time"
)

// How long the watchdog waits before it releases a retired hold again, and when
// the last release of it was not even sent.
const (
	retryRelease = time.Second
	retryUnsent  = 200 * time.Millisecond
)

// maxReleasing is how many retired holds are released at a time. An engine that
// was away for a while must not be run over when it comes back.
const maxReleasing = 64

// A retiree is a hold that nobody uses any more and that may exist in the
// engine: the answer to its acquire or its release never came.
type retiree struct {
	hold     Hold
	acquire  bool  // its acquire is what was not answered
	answered bool  // a release of it was
	until    int64 // by then it has expired
	next     int64 // when to release it again
	sending  int   // releases on their way
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

// releaseDue starts the releases that are due.
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
	r.next = l.now() + int64(l.retryAfter(err))
	answered := err == nil || notOurs(err)
	r.answered = r.answered || answered
	i := slices.Index(l.retired, r)
	if i < 0 { // it has expired, or was released, meanwhile
		l.prod()
		return answered
	}
	l.retired = slices.Delete(l.retired, i, i+1)
	// Not held says nothing about an acquire that may still be on its way: it
	// can be executed after this release.
	switch {
	case err == nil:
		r.acquire = false
	case r.acquire, !answered:
		l.retired = append(l.retired, r)
	}
	l.prod()
	return answered
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

// unsettled drops the retirees that need not be released again before the
// Locker is closed. It reports whether there are others, and when to look at
// them.
func (l *Locker) unsettled(now int64) (next int64, left bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired = slices.DeleteFunc(l.retired, func(r *retiree) bool {
		return now > r.until || r.answered && r.sending == 0
	})
	next = never
	for _, r := range l.retired {
		next = min(next, r.until+1)
	}
	return min(next, l.nextRelease()), len(l.retired) > 0
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
