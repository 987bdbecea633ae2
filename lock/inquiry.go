package lock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// patience is how long an engine may take to answer a caller that has little time left
// before it counts as silent.
const patience = 500 * time.Millisecond

// An inquiry is the first attempt of a caller that has queued for its key and has little
// time left. The attempt belongs to the queue: when the caller's time is over, the
// inquiry continues as the head of the queue, and the callers behind it learn the
// engine's answer. If each attempt ended with its caller, a queue of such callers would
// never get an answer, and a healthy engine would look like a silent one.
type inquiry struct {
	locker *Locker
	call   acquireCall
	taken  atomic.Bool  // by the caller, which leaves, or by the inquiry, which has an answer
	answer chan *answer // of 1
}

// An answer is the result of an attempt.
type answer struct {
	lease *Lease
	err   error
}

// inquire makes the first attempt of the head of a queue, if its time is short, and returns
// the answer. It returns false if ctx ended first: then the inquiry is the head.
func (l *Locker) inquire(ctx context.Context, c acquireCall) (first *answer, isHead bool) {
	if !isShort(ctx) {
		return nil, true
	}
	q := &inquiry{locker: l, call: c, answer: make(chan *answer, 1)}
	if !l.startInquiry(ctx, q) {
		return nil, true
	}
	select {
	case a := <-q.answer:
		return a, true
	case <-ctx.Done():
	}
	if q.taken.CompareAndSwap(false, true) {
		return nil, false
	}
	return <-q.answer, true
}

// isShort reports whether ctx ends before the engine's patience does.
func isShort(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < patience
}

// startInquiry returns false if the Locker starts no request any more.
func (l *Locker) startInquiry(ctx context.Context, q *inquiry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.halted {
		return false
	}
	l.inBackground("acquire a lock", func() { q.run(context.WithoutCancel(ctx)) })
	return true
}

// run makes the attempt, and takes care of its answer if the caller has left. The end of
// Close cuts it short.
func (q *inquiry) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer context.AfterFunc(q.locker.ctx, cancel)()
	a := &answer{err: fmt.Errorf("acquire lock %q: %w: the engine did not return", q.call.key, lockengine.ErrNoAnswer)}
	defer func() {
		if q.taken.CompareAndSwap(false, true) {
			q.answer <- a
			return
		}
		q.bequeath(a)
	}()
	sent := q.locker.now()
	a.lease, a.err = q.locker.attempt(ctx, q.call)
	if errors.Is(a.err, context.DeadlineExceeded) { // the inquiry's, which means nothing to a caller
		a.err = overdue(a.err, time.Duration(q.locker.now()-sent))
	}
}

// bequeath leaves the queue to the next caller: with the lock, or with the engine's
// answer.
func (q *inquiry) bequeath(a *answer) {
	l, key := q.locker, q.call.key
	if a.lease != nil {
		l.queues.setGrant(key, a.lease.grant)
		l.track(a.lease.grant)
		if err := a.lease.Release(l.ctx); err != nil {
			l.cfg.Logger.Debug("release lock that nobody wants any more", "key", key, "error", err)
		}
		return
	}
	l.queues.note(key, newsOf(a.err, l.now()))
	l.queues.leave(key)
	l.finish()
}
