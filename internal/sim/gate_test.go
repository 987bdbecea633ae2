package sim

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/sim/simdb"
	"github.com/belaygo/belay/lock/lockengine"
)

// A call is one request of a process. It waits for the scheduler, which decides its fate.
type call struct {
	process *process
	op      *op    // nil: a part of the process made it that serves all operations
	actor   string // who made it, for choices and stories
	text    string
	n       int // order of arrival: those that came at once have the same
	at      time.Time
	ctx     context.Context
	run     func() // executes it; nil: the database does, once the call has its fate
	db      *simdb.Call
	sql     string // of db, whole
	conn    string
	cuts    bool // it goes over a network
	pays    bool // to the bank
	mails   bool // by a relay of messages, or a consumer
	sends   bool // a message, to the broker
	asks    []lockengine.Request
	err     error // of run
	decided chan fate
}

// label names a call in a list of choices.
func (c *call) label() string { return c.actor + ": " + c.text }

// A gate is where calls wait.
type gate struct {
	mu      sync.Mutex
	waiting []*call
	left    []*call       // given up before they had a fate
	arrived chan struct{} // has a token when a call came, or a caller gave up
	n       int           // how often calls was called
	trace   *tracer       // nil: none
}

func newGate() *gate { return &gate{arrived: make(chan struct{}, 1)} }

func (g *gate) wake() {
	select {
	case g.arrived <- struct{}{}:
	default:
	}
}

// follow lets a tracer see the calls. The mutex shows it to a caller whom a timer wakes.
func (g *gate) follow(t *tracer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trace = t
}

// pass waits until the scheduler has decided what becomes of c.
func (g *gate) pass(c *call) fate {
	c.decided = make(chan fate, 1)
	g.mu.Lock()
	if c.process.dead {
		g.mu.Unlock()
		return cutBefore
	}
	c.n, c.at = g.n, time.Now()
	g.waiting = append(g.waiting, c)
	g.mu.Unlock()
	g.trace.arrived(c)
	g.wake()
	if c.ctx.Done() != nil {
		defer context.AfterFunc(c.ctx, g.wake)()
	}
	if c.db == nil || !c.db.Tx {
		return <-c.decided
	}
	select {
	case f := <-c.decided:
		return f
	case <-c.ctx.Done(): // who waits for a mutex until the call ends is not blocked durably
		g.leave(c)
		g.trace.lost(c)
		return cutBefore
	}
}

func (g *gate) leave(c *call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(w *call) bool { return w == c })
	g.left = append(g.left, c)
}

// gone returns the calls that were given up since it was called last.
func (g *gate) gone() []*call {
	g.mu.Lock()
	defer g.mu.Unlock()
	left := g.left
	g.left = nil
	slices.SortFunc(left, byLabel)
	return left
}

func byLabel(a, b *call) int {
	return cmp.Or(strings.Compare(a.actor, b.actor), strings.Compare(a.text, b.text), cmp.Compare(a.n, b.n))
}

// calls returns the calls that wait, in an order that does not depend on which
// goroutine ran first.
func (g *gate) calls() []*call {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n++
	slices.SortFunc(g.waiting, byLabel)
	return slices.Clone(g.waiting)
}

// thinking are the operations of p whose changes go on.
func (g *gate) thinking(p *process) (all []*op) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.waiting {
		if c.process == p && c.text == think {
			all = append(all, c.op)
		}
	}
	return all
}

// decide lets c go on.
func (g *gate) decide(c *call, f fate) {
	g.mu.Lock()
	g.waiting = slices.DeleteFunc(g.waiting, func(w *call) bool { return w == c })
	g.mu.Unlock()
	c.decided <- f
}

func (g *gate) isDead(p *process) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return p.dead
}

// kill ends the calls of p, now and from now on.
func (g *gate) kill(p *process) {
	g.mu.Lock()
	p.dead = true
	g.mu.Unlock()
	for _, c := range g.calls() {
		if c.process == p {
			g.decide(c, cutBefore)
		}
	}
}

// A fate is what becomes of a call.
type fate int

const (
	executed  fate = iota // and answered
	cutBefore             // not executed, not answered
	cutAfter              // executed, not answered
	late                  // not answered, and executed later or never
	refused               // a COMMIT is rolled back, with an error
	mistaken              // it is executed, and answered with that error
)
