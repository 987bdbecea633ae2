package guard

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
)

// A gate has calls wait for the pool of connections before their locks, in the order in which they
// came: a call that waits for a connection with a lock keeps others from its key meanwhile.
//
// It counts transactions that begin, not calls that have passed: those that wait for a lock take no
// place from the others. It is open while fewer begin than twice the connections of the pool, of
// which as many may have one and wait for the answer to BEGIN.
type gate struct {
	connections func() int // of the pool at most, 0 if there is no limit
	longest     time.Duration

	begins atomic.Int64
	queued atomic.Int64 // the length of line

	mu   sync.Mutex
	line list.List // of chan struct{}, closed when the call may pass
}

// longestGate bounds the wait of a call. Then it waits for the pool with its locks.
const longestGate = 10 * time.Second

func newGate(db *gorm.DB) *gate {
	return &gate{longest: longestGate, connections: func() int {
		pool, err := db.DB()
		if err != nil {
			return 0 // Begin fails
		}
		return pool.Stats().MaxOpenConnections
	}}
}

// pass waits until the gate is open, ctx ends, or g.longest has passed. It returns how long.
func (g *gate) pass(ctx context.Context) time.Duration {
	if g.queued.Load() == 0 && g.room() > 0 {
		return 0
	}
	begun := time.Now()
	open := make(chan struct{})
	place := g.join(open)
	defer g.leave(place)
	g.admit() // the last transaction may have begun before the call was in the line
	timer := time.NewTimer(g.longest)
	defer timer.Stop()
	select {
	case <-open:
	case <-ctx.Done():
	case <-timer.C:
	}
	return time.Since(begun)
}

// room returns how many calls may pass now.
func (g *gate) room() int64 {
	begins := g.begins.Load()
	if begins < 2 { // no pool has less than one connection
		return 2 - begins
	}
	connections := g.connections()
	if connections == 0 {
		return 1
	}
	return 2*int64(connections) - begins
}

func (g *gate) join(open chan struct{}) *list.Element {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queued.Add(1)
	return g.line.PushBack(open)
}

// leave takes a call out of the line that is still there.
func (g *gate) leave(place *list.Element) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.line.Remove(place)
	g.queued.Store(int64(g.line.Len()))
}

// admit lets as many calls pass as there is room for. It is called when a transaction has begun, and
// when a call ends that has passed, for it may not have come so far.
func (g *gate) admit() {
	if g.queued.Load() == 0 {
		return
	}
	room := g.room()
	g.mu.Lock()
	defer g.mu.Unlock()
	for ; room > 0 && g.line.Len() > 0; room-- {
		close(g.line.Remove(g.line.Front()).(chan struct{}))
	}
	g.queued.Store(int64(g.line.Len()))
}

// begin notes that a transaction begins, until begun.
func (g *gate) begin() { g.begins.Add(1) }

func (g *gate) begun() {
	g.begins.Add(-1)
	g.admit()
}
