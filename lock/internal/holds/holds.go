// Package holds ends locks that were not renewed, for engines whose stores keep a lock for as long
// as the process keeps its lease or its session alive.
package holds

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// A Hold is a lock of one owner.
type Hold struct{ Key, Owner string }

// A Set has the locks that an engine has acquired, or may have, until they are released. T is what
// the engine notes about a lock. A lock is deleted a ttl after its last renewal.
type Set[T any] struct {
	delete func(Hold, T)

	mu     sync.Mutex
	held   map[Hold]*held[T]
	begun  map[Hold]int // how many acquires and renewals are on their way
	closed bool
}

type held[T any] struct {
	note   T
	timer  *time.Timer
	over   bool // it is being deleted
	failed bool // the deletion, once
}

// New returns a Set that calls unrenewed for each lock that was not renewed.
func New[T any](unrenewed func(Hold, T)) *Set[T] {
	return &Set[T]{delete: unrenewed, held: make(map[Hold]*held[T]), begun: make(map[Hold]int)}
}

// Add notes that a lock was acquired or renewed, and ends after ttl. note gets the note about the
// lock until now, zero if there is none, and returns the new one, or false if the lock has ended.
// Add reports whether the lock is in the Set; it is not after Close.
func (s *Set[T]) Add(h Hold, ttl time.Duration, note func(old T) (T, bool)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	var before T
	old := s.held[h]
	if old != nil {
		before = old.note
	}
	now, ok := note(before)
	if !ok {
		return false
	}
	if old != nil {
		old.timer.Stop()
	}
	it := &held[T]{note: now}
	it.timer = time.AfterFunc(ttl, func() { s.end(h, it) })
	s.held[h] = it
	return true
}

// Has reports whether the lock is in the Set.
func (s *Set[T]) Has(h Hold) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[h] != nil
}

// Begin notes that a lock is about to be acquired or renewed, so that it is not deleted until Done.
// It reports false if the deletion has begun.
func (s *Set[T]) Begin(h Hold) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.held[h]; it != nil && it.over {
		return false
	}
	s.begun[h]++
	return true
}

// Done ends the note of a Begin that reported true.
func (s *Set[T]) Done(h Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun[h]--; s.begun[h] == 0 {
		delete(s.begun, h)
	}
}

// Remove deletes the note about a lock that is gone.
func (s *Set[T]) Remove(h Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(h)
}

func (s *Set[T]) remove(h Hold) {
	if it := s.held[h]; it != nil {
		it.timer.Stop()
		delete(s.held, h)
	}
}

// How long a deletion waits for an acquire or a renewal, and for another try.
const (
	forOthers = 100 * time.Millisecond
	again     = time.Second
)

// end deletes a lock that was not renewed.
func (s *Set[T]) end(h Hold, it *held[T]) {
	s.mu.Lock()
	if s.closed || s.held[h] != it {
		s.mu.Unlock()
		return
	}
	if s.begun[h] > 0 {
		it.timer.Reset(forOthers)
		s.mu.Unlock()
		return
	}
	it.over = true
	note := it.note
	s.mu.Unlock()
	s.delete(h, note)
}

// Retry tries the deletion of a lock again after a second. It reports whether that is the first
// time.
func (s *Set[T]) Retry(h Hold) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.held[h]
	if it == nil || s.closed {
		return false
	}
	it.timer.Reset(again)
	first, it.failed = !it.failed, true
	return first
}

// All returns the locks that the engine has, may have, or is about to get.
func (s *Set[T]) All() []Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Keys(s.held)), maps.Keys(s.begun))
}

// Change replaces the note about each lock.
func (s *Set[T]) Change(note func(T) T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.held {
		it.note = note(it.note)
	}
}

// RemoveAll removes the locks whose notes match, and returns how many there were.
func (s *Set[T]) RemoveAll(matches func(T) bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h, it := range s.held {
		if matches(it.note) {
			s.remove(h)
			n++
		}
	}
	return n
}

// Close removes all locks, and returns how many there were. None is deleted.
func (s *Set[T]) Close() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	n := len(s.held)
	for _, it := range s.held {
		it.timer.Stop()
	}
	clear(s.held)
	return n
}
