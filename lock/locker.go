package lock

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock/lockengine"
)

// A Locker acquires locks and renews them. It is safe for concurrent use, and a
// prometheus.Collector.
//
// # Waiting
//
// Callers of one process that acquire the same key queue in memory, first in, first out.
// Only the head of the queue calls the engine. A lockengine.Waker notifies it when the lock is
// released; the head polls in any case. While the engine cannot be reached, as in a
// failover, the head retries for up to a ttl. Those behind it who have waited as long then make one
// attempt each.
//
// A lock that is released while a caller of this process waits is handed over in
// memory: always once, and again within Config.HandOver of the grant. Later it is
// released in the engine, so that other processes get it, too. An engine may keep the
// order in which processes began to wait: lock/redislock does.
//
// A caller whose context carries a lease on the key gets another one at once.
//
// # Requests without an answer
//
// A request is executed at most once. One without an answer may leave an unused grant.
// The Locker repeats its release until a ttl has passed, and at once when a caller
// needs the key. Close waits until the engine has answered about each such grant. There
// are at most 10,000, of which some 100 a second are released again; further ones are
// left to expire. An engine that hung may execute an acquire even later. Such a lock is
// released when a caller of this Locker needs its key; other processes wait until it
// expires.
type Locker struct {
	engine  lockengine.Engine
	losses  lockengine.LossWatcher // the engine, nil if it is no LossWatcher
	limited bool                   // the engine itself bounds an acquire by cfg.answerTime
	cfg     Config
	epoch   time.Time     // when the Locker was made
	step    time.Duration // by how much a test has set the wall clock
	id      string        // first part of the owner ids of this Locker
	seq     atomic.Uint64
	queues  *queues
	metrics *metrics

	closing chan struct{} // closed when Close is called
	drained chan struct{} // closed when, after Close was called, no lease and no acquire is left
	stop    chan struct{} // closed when the watchdog must end
	settled chan struct{} // closed when the watchdog only waits for its requests
	done    chan struct{} // closed when the watchdog and its requests have ended
	wake    chan struct{} // makes the watchdog look at its lists

	requests sync.WaitGroup  // of the watchdog
	ctx      context.Context // of the requests
	cancel   context.CancelFunc

	mu        sync.Mutex
	closed    bool
	halted    bool // the watchdog has ended, or is about to
	active    int  // acquires that run and leases that are held
	grants    agenda[*grant]
	unwatched []*grant // grants whose loss is to be watched, by age; some have ended
	suspects  []*grant // grants to be renewed at once
	renewing  bool     // whether a batch of suspects is being renewed
	wakesAt   int64    // when the watchdog's timer wakes it
	orphans   orphans
	protected map[string]int64 // by owner: until when reclaim does not release its lock
	sweepAt   int64            // when to sweep protected
	deferred  deferred         // the work of unlock
}

// now returns the time on the Locker's clock, which is monotonic.
func (l *Locker) now() int64 { return int64(time.Since(l.epoch)) }

// madeAt returns when the Locker was made, by the wall clock as it is now, which may
// have been set since.
func (l *Locker) madeAt() time.Time {
	now := time.Now()
	return now.Add(l.step - now.Sub(l.epoch))
}

// newOwner returns an owner id in Redisson's form, uuid:n.
func (l *Locker) newOwner() string {
	return l.id + ":" + strconv.FormatUint(l.seq.Add(1), 10)
}

// begin counts an acquire in, unless the Locker is closed.
func (l *Locker) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.active++
	return true
}

// finish counts an acquire that got nothing, or a lease that has ended, out.
func (l *Locker) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finishLocked()
}

func (l *Locker) finishLocked() {
	l.active--
	if l.closed && l.active == 0 {
		close(l.drained)
	}
}

// unlock unlocks mu and does the deferred work. The context of a lost lease ends before
// the next caller becomes the head.
func (l *Locker) unlock() {
	n := l.deferred
	l.deferred = deferred{}
	l.mu.Unlock()
	for _, e := range n.ended {
		e.grant.cancel(e.err)
	}
	for _, e := range n.ended {
		l.queues.leave(e.grant.key)
		l.finish()
	}
	for _, x := range n.lost {
		l.logLoss(x)
	}
	if failed := len(n.notRenewed); failed > 0 {
		first := n.notRenewed[0]
		l.cfg.Logger.Warn("renew locks", "failed", failed, "key", first.grant.key,
			"node", first.grant.place.Node, "error", first.err)
	}
}

func (l *Locker) logLoss(x failure) {
	level, g := slog.LevelWarn, x.grant
	if errors.Is(x.err, ErrClosed) { // the program ends; no lock has failed
		level = slog.LevelInfo
	}
	l.cfg.Logger.Log(context.Background(), level, "lock lost", "key", g.key, "owner", g.owner,
		"node", g.place.Node, "slot", g.place.Slot, "error", x.err)
}

// wakeWatchdog makes the watchdog look at its lists.
func (l *Locker) wakeWatchdog() { wait.Wake(l.wake) }
