package zklock

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// A hold is a lock of one owner.
type hold struct{ key, owner string }

// A held is what the engine notes about a lock: it ends a ttl after its last renewal, though the
// session lives on.
type held struct {
	session *session
	timer   *time.Timer
	busy    int  // acquires and renewals that are on their way
	over    bool // it is being deleted
	failed  bool // the deletion, once
}

// holds are the locks that this engine has acquired, or may have, until they are released.
type holds struct {
	delete func(hold)

	mu     sync.Mutex
	byHold map[hold]*held
	begun  map[hold]int // how many acquires and renewals are on their way
	closed bool
}

// add notes that a lock was acquired or renewed, and ends after ttl. It reports false if the
// session has ended, or may be ended by Close.
func (hs *holds) add(h hold, s *session, ttl time.Duration) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.closed || s.ended() {
		return false
	}
	it := &held{session: s}
	if old := hs.byHold[h]; old != nil {
		old.timer.Stop()
		it.busy = old.busy
	}
	it.timer = time.AfterFunc(ttl, func() { hs.expire(h, it) })
	hs.byHold[h] = it
	return true
}

func (hs *holds) known(h hold) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return hs.byHold[h] != nil
}

// begin notes that a lock is about to be acquired or renewed, so that it is not deleted until done.
// It reports false if the deletion has begun.
func (hs *holds) begin(h hold) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	it := hs.byHold[h]
	if it != nil && it.over {
		return false
	}
	if it != nil {
		it.busy++
	}
	hs.begun[h]++
	return true
}

// done ends the note of begin.
func (hs *holds) done(h hold) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if it := hs.byHold[h]; it != nil && it.busy > 0 {
		it.busy--
	}
	if hs.begun[h]--; hs.begun[h] == 0 {
		delete(hs.begun, h)
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

// again is how long a deletion waits for a renewal.
const again = 50 * time.Millisecond

// expire deletes a lock that was not renewed.
func (hs *holds) expire(h hold, it *held) {
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
	hs.delete(h)
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
	it.timer.Reset(time.Second)
	first, it.failed = !it.failed, true
	return first
}

// all returns the locks that the engine has, may have, or is about to get.
func (hs *holds) all() []hold {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Keys(hs.byHold)), maps.Keys(hs.begun))
}

// end removes the locks of a session, and returns how many there were.
func (hs *holds) end(s *session) (n int) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for h, it := range hs.byHold {
		if it.session == s {
			it.timer.Stop()
			delete(hs.byHold, h)
			n++
		}
	}
	return n
}

// close removes all locks, and returns how many there were.
func (hs *holds) close() int {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.closed = true
	n := len(hs.byHold)
	for _, it := range hs.byHold {
		it.timer.Stop()
	}
	clear(hs.byHold)
	return n
}
