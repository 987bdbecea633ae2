package lock

import (
	"container/list"
	"context"
	"sync"
)

// gates keeps, for each key that somebody in this process wants, who is inside
// and who waits, first in, first out. Being inside means being the one that may
// ask the engine for the key, or has it.
type gates struct {
	mu sync.Mutex
	m  map[string]*gate
}

type gate struct {
	grant *grant     // of the one inside, nil while it is still asking
	queue *list.List // of seat; nil if nobody has waited yet
	alarm *alarm     // tells when the key may have become free; nil if nobody has listened yet
}

// A seat is a place in a queue.
type seat struct {
	turns chan turn
	alone bool // who waits does not take a grant that is handed over
}

// A turn lets a caller in.
type turn struct {
	queued bool   // it had to wait for it
	grant  *grant // handed over in memory, nil if the engine must be asked
	yield  bool   // the lock was just freed, and other processes may wait for it
}

func newGates() *gates { return &gates{m: make(map[string]*gate)} }

// enter waits for its turn. It returns false if ctx or stop ends first.
func (g *gates) enter(ctx context.Context, c claim, stop <-chan struct{}) (t turn, ok bool) {
	g.mu.Lock()
	gt, busy := g.m[c.key]
	if !busy {
		g.m[c.key] = new(gate)
		g.mu.Unlock()
		return turn{}, true
	}
	if gt.queue == nil {
		gt.queue = list.New()
	}
	turns := make(chan turn, 1)
	place := gt.queue.PushBack(seat{turns, c.unlessMarked})
	g.mu.Unlock()

	select {
	case t := <-turns:
		return t, true
	case <-ctx.Done():
	case <-stop:
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case t := <-turns: // it came while we turned away
		return t, true
	default:
		gt.queue.Remove(place)
		return turn{}, false
	}
}

// tryEnter goes inside if nobody is. Otherwise it returns the grant of the one
// who is, or nil.
func (g *gates) tryEnter(key string) (inside *grant, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if gt, busy := g.m[key]; busy {
		return gt.grant, false
	}
	g.m[key] = new(gate)
	return nil, true
}

// settle records the grant of the one inside.
func (g *gates) settle(key string, gr *grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.m[key].grant = gr
}

// inside returns the grant of the one inside key's gate, or nil.
func (g *gates) inside(key string) *grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	if gt := g.m[key]; gt != nil {
		return gt.grant
	}
	return nil
}

// pass lets the first in the queue in with a grant. It reports false if nobody
// waits, or the first must ask the engine.
func (g *gates) pass(key string, gr *grant) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	gt := g.m[key]
	if gt.empty() || gt.queue.Front().Value.(seat).alone {
		return false
	}
	return gt.next(turn{queued: true, grant: gr})
}

// leave lets the next one in, to ask the engine.
func (g *gates) leave(key string, yield bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	gt := g.m[key]
	gt.grant = nil
	if gt.next(turn{queued: true, yield: yield}) {
		return
	}
	delete(g.m, key)
	if gt.alarm != nil {
		gt.alarm.stop()
	}
}

func (gt *gate) empty() bool { return gt.queue == nil || gt.queue.Len() == 0 }

func (gt *gate) next(t turn) bool {
	if gt.empty() {
		return false
	}
	gt.queue.Remove(gt.queue.Front()).(seat).turns <- t
	return true
}

// An alarm goes off when a key may have become free.
type alarm struct {
	c    chan struct{}
	stop func()
}

func (a *alarm) ring() {
	select {
	case a.c <- struct{}{}:
	default:
	}
}

func (g *gates) alarm(key string) *alarm {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.m[key].alarm
}

func (g *gates) setAlarm(key string, a *alarm) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.m[key].alarm = a
}
