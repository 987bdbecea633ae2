package simdb

import (
	"sync"
	"time"
)

// A baton lets one statement run at a time. Those that it has woken run next, in their
// order, before any other: a run does not depend on Go's scheduler.
type baton struct {
	mu    sync.Mutex
	taken bool
	next  []chan struct{}
	wakes int             // how many there were
	pick  func(n int) int // which of n goes next, for tests of other orders; nil = the first
}

// take waits until nothing else runs.
func (b *baton) take() {
	b.mu.Lock()
	if !b.taken {
		b.taken = true
		b.mu.Unlock()
		return
	}
	turn := make(chan struct{}, 1)
	b.next = append(b.next, turn)
	b.mu.Unlock()
	<-turn
}

// pass lets the next one run.
func (b *baton) pass() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.next) == 0 {
		b.taken = false
		return
	}
	n := 0
	if b.pick != nil && len(b.next) > 1 {
		n = b.pick(len(b.next))
	}
	turn := b.next[n]
	b.next = append(b.next[:n:n], b.next[n+1:]...)
	turn <- struct{}{}
}

// yield lets those run that were woken meanwhile, if a test wants other orders.
func (b *baton) yield() {
	b.mu.Lock()
	if b.pick == nil || len(b.next) == 0 {
		b.mu.Unlock()
		return
	}
	turn := make(chan struct{}, 1)
	b.next = append([]chan struct{}{turn}, b.next...)
	b.mu.Unlock()
	b.pass()
	<-turn
}

// with runs f while nothing else runs.
func (b *baton) with(f func()) {
	b.take()
	defer b.pass()
	f()
}

// A waiter is a statement that waits for another one.
type waiter struct {
	turn  chan struct{}
	woken bool
	err   error
}

func newWaiter() *waiter { return &waiter{turn: make(chan struct{}, 1)} }

// wake lets a waiter run after the caller, which has the baton.
func (b *baton) wake(w *waiter, err error) {
	if w == nil || w.woken {
		return
	}
	w.woken, w.err = true, err
	b.wakes++
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = append(b.next, w.turn)
}

// await passes the baton on, and waits until w is woken. After a while it calls late, once.
func (b *baton) await(w *waiter, while time.Duration, late func()) error {
	timer := time.AfterFunc(while, func() {
		b.with(func() {
			if !w.woken {
				late()
			}
		})
	})
	defer timer.Stop()
	b.pass()
	<-w.turn
	return w.err
}
