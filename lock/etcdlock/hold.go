package etcdlock

import (
	"sync"
	"time"
)

// A hold is a lock of one owner.
type hold struct{ key, owner string }

// A held is what the engine notes about a lock: it ends a ttl after its last renewal, though its
// lease lives on with the other locks.
type held struct {
	revision int64 // of its last write
	timer    *time.Timer
	busy     int  // acquires and renewals that are on their way
	over     bool // it is being deleted
	failed   bool // the deletion, once
	restored bool // etcd has lost writes since: the next revision may be lower
}

// holds are the locks that this engine has acquired or renewed, until they are released.
type holds struct {
	delete func(h hold, revision int64)

	mu     sync.Mutex
	byHold map[hold]*held
	closed bool
}

// add notes that a lock was granted or renewed, and ends after ttl. Of two renewals that overlap, the
// one that ends last may know an older revision.
func (hs *holds) add(h hold, revision int64, ttl time.Duration) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.closed {
		return
	}
	it := &held{revision: revision}
	if old := hs.byHold[h]; old != nil {
		old.timer.Stop()
		it.busy = old.busy
		if !old.restored {
			it.revision = max(revision, old.revision)
		}
	}
	it.timer = time.AfterFunc(ttl, func() { hs.end(h, it) })
	hs.byHold[h] = it
}

// restored notes that etcd has lost writes, so revisions that were noted before may be higher than
// those that follow.
func (hs *holds) restored() {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, it := range hs.byHold {
		it.restored = true
	}
}

// begin notes that a lock is about to be acquired or renewed, so that it is not deleted until done.
// It reports false if the deletion has begun.
func (hs *holds) begin(h hold) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	it := hs.byHold[h]
	if it == nil {
		return true
	}
	if !it.over {
		it.busy++
	}
	return !it.over
}

// done ends the note of begin.
func (hs *holds) done(h hold) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if it := hs.byHold[h]; it != nil && it.busy > 0 {
		it.busy--
	}
}

// remove deletes the note about a lock that is gone.
func (hs *holds) remove(h hold) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if it := hs.byHold[h]; it != nil {
		it.timer.Stop()
		delete(hs.byHold, h)
	}
}

// again is how long a deletion waits for a renewal. A deletion that failed waits ten times as long.
const again = 100 * time.Millisecond

// end deletes a lock that was not renewed.
func (hs *holds) end(h hold, it *held) {
	hs.mu.Lock()
	if hs.closed || hs.byHold[h] != it {
		hs.mu.Unlock()
		return
	}
	if it.busy > 0 {
		it.timer.Reset(again)
		hs.mu.Unlock()
		return
	}
	it.over = true
	hs.mu.Unlock()
	hs.delete(h, it.revision)
}

// retry tries the deletion of a lock again after a second. It reports whether that is the first
// time.
func (hs *holds) retry(h hold) (first bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	it := hs.byHold[h]
	if it == nil || hs.closed {
		return false
	}
	it.timer.Reset(10 * again)
	first, it.failed = !it.failed, true
	return first
}

func (hs *holds) close() {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.closed = true
	for _, it := range hs.byHold {
		it.timer.Stop()
	}
	clear(hs.byHold)
}
