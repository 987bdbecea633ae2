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
	lease *Lease    // the lease of the one inside, nil while it is still asking
	queue list.List // of chan struct{}, closed when it is that caller's turn
}

func newGates() *gates { return &gates{m: make(map[string]*gate)} }

// tryEnter goes inside if nobody is. Otherwise it returns the lease of the one
// who is, or nil.
func (g *gates) tryEnter(key string) (inside *Lease, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if gt, busy := g.m[key]; busy {
		return gt.lease, false
	}
	g.m[key] = new(gate)
	return nil, true
}

// enter waits for its turn. It returns false if ctx or stop ends first, with
// the lease of the one who is inside then, or nil.
func (g *gates) enter(ctx context.Context, key string, stop <-chan struct{}) (inside *Lease, ok bool) {
	g.mu.Lock()
	gt, busy := g.m[key]
	if !busy {
		g.m[key] = new(gate)
		g.mu.Unlock()
		return nil, true
	}
	turn := make(chan struct{})
	place := gt.queue.PushBack(turn)
	g.mu.Unlock()

	select {
	case <-turn:
		if endOf(ctx) == nil {
			return nil, true
		}
	case <-ctx.Done():
	case <-stop:
	}

	g.mu.Lock()
	select {
	case <-turn: // it came while we turned away: let the next one in
		g.mu.Unlock()
		g.leave(key)
		return nil, false
	default:
	}
	defer g.mu.Unlock()
	gt.queue.Remove(place)
	return gt.lease, false
}

// settle records the lease of the one inside.
func (g *gates) settle(key string, l *Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.m[key].lease = l
}

// leave lets the next one in.
func (g *gates) leave(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	gt := g.m[key]
	gt.lease = nil
	next := gt.queue.Front()
	if next == nil {
		delete(g.m, key)
		return
	}
	close(gt.queue.Remove(next).(chan struct{}))
}
