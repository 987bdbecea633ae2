package guard

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
)

// A gate has calls wait for the pool of connections before their locks, in the order in which they
// came: a call that waits for a connection with a lock keeps others from its key meanwhile.
//
// It is open while fewer transactions begin than twice the connections of the pool: as many may have
// one and wait for the answer to BEGIN. A call that it has let pass counts, too, until it begins a
// transaction or ends; but for a short time only, as it may have to wait for a lock, and calls for
// other keys do not wait for that.
type gate struct {
	connections func() int // of the pool at most, 0 if there is no limit
	longest     time.Duration
	onTheWay    time.Duration

	begins  atomic.Int64 // transactions
	passing atomic.Int64 // calls that have waited, and are on their way to one
	queued  atomic.Int64 // the length of line

	mu   sync.Mutex
	line list.List // of *pass
}

const (
	// longestGate bounds the wait of a call. Then it waits for the pool with its locks.
	longestGate = 10 * time.Second
	// onTheWay is how long a call counts that waits for its locks.
	onTheWay = 20 * time.Millisecond
)

func newGate(db *gorm.DB) *gate {
	return &gate{longest: longestGate, onTheWay: onTheWay, connections: func() int {
		pool, err := db.DB()
		if err != nil {
			return 0 // Begin fails
		}
		return pool.Stats().MaxOpenConnections
	}}
}

// A pass is that of a call which has waited at the gate.
type pass struct {
	gate *gate
	open chan struct{} // closed when the call may go on

	// Guarded by gate.mu:
	counts bool        // in gate.passing
	timer  *time.Timer // until it does no more
}

// open reports whether a call may pass at once.
func (g *gate) open() bool {
	if g.queued.Load() > 0 {
		return false
	}
	return g.begins.Load()+g.passing.Load() < 2 || g.room() > 0 // no pool has less than one connection
}

// enter waits until the call may pass, ctx ends, or g.longest has passed. It returns how long.
func (g *gate) enter(ctx context.Context) (*pass, time.Duration, error) {
	begun := time.Now()
	p := &pass{gate: g, open: make(chan struct{})}
	place := g.join(p)
	g.admit() // the last transaction may have begun before the call was in the line
	timer := time.NewTimer(g.longest)
	defer timer.Stop()
	select {
	case <-p.open:
		return p, time.Since(begun), nil
	case <-ctx.Done():
	case <-timer.C:
	}
	g.quit(place)
	p.use()
	if err := ctx.Err(); err != nil {
		return nil, 0, fmt.Errorf("wait for a connection: %w", err)
	}
	return nil, time.Since(begun), nil
}

// room returns how many calls may pass now.
func (g *gate) room() int64 {
	connections := g.connections()
	if connections == 0 {
		return 1
	}
	return 2*int64(connections) - g.begins.Load() - g.passing.Load()
}

func (g *gate) join(p *pass) *list.Element {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queued.Add(1)
	return g.line.PushBack(p)
}

// quit takes a call out of the line that is still there.
func (g *gate) quit(place *list.Element) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.line.Remove(place)
	g.queued.Store(int64(g.line.Len()))
}

// admit lets calls pass while there is room. It is called whenever that may have grown.
func (g *gate) admit() {
	if g.queued.Load() == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.line.Len() > 0 && g.room() > 0 {
		p := g.line.Remove(g.line.Front()).(*pass)
		g.passing.Add(1)
		p.counts, p.timer = true, time.AfterFunc(g.onTheWay, p.use)
		close(p.open)
	}
	g.queued.Store(int64(g.line.Len()))
}

// begin notes that a transaction begins, until begun.
func (g *gate) begin(p *pass) {
	g.begins.Add(1)
	p.use()
}

func (g *gate) begun() {
	g.begins.Add(-1)
	g.admit()
}

// use notes that the call counts no more: it begins a transaction, or ends, or waits for its locks. It
// may be called again, and for a call that has not waited.
func (p *pass) use() {
	if p == nil || !p.stop() {
		return
	}
	p.gate.passing.Add(-1)
	p.gate.admit()
}

func (p *pass) stop() (counted bool) {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	counted, p.counts = p.counts, false
	if counted {
		p.timer.Stop()
	}
	return counted
}
