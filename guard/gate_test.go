package guard

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testwait"
)

// gateOf returns a gate to a pool that has so many connections.
func gateOf(connections int) *gate {
	return &gate{connections: func() int { return connections }, longest: time.Hour, onTheWay: time.Hour}
}

// queue has a call wait at the gate, behind those that do.
func queue(t *testing.T, g *gate) (passed chan *pass) {
	t.Helper()
	passed = make(chan *pass, 1)
	before := g.queued.Load()
	go func() {
		p, _, err := g.enter(t.Context())
		if err != nil {
			t.Error(err)
		}
		passed <- p
	}()
	testwait.Until(t, "the call is in the line", func() bool { return g.queued.Load() == before+1 })
	return passed
}

// TestGate: calls pass in their order, as many as there is room for.
func TestGate(t *testing.T) {
	g := gateOf(1)
	for range 2 {
		if !g.open() {
			t.Fatal("the gate is closed")
		}
		g.begin(nil)
	}
	if g.open() {
		t.Fatal("the gate is open")
	}
	var line []chan *pass
	for range 5 {
		line = append(line, queue(t, g))
	}
	next := func(why string, n int) (last *pass) {
		t.Helper()
		for range n {
			last = <-line[0]
			line = line[1:]
		}
		if got := g.queued.Load(); got != int64(len(line)) {
			t.Fatalf("%s: %d calls wait, want %d", why, got, len(line))
		}
		return last
	}
	g.begun()
	p := next("a transaction has begun", 1)
	g.begin(p)
	next("the call that has passed begins one", 0)
	g.begun()
	p = next("it has begun", 1)
	p.use()
	p.use()
	p = next("a call has ended that has not begun one", 1)
	g.begun()
	next("the other transaction has begun", 1)
	g.onTheWay = time.Nanosecond
	p.use()
	next("a call that has passed does not wait for its lock any more", 1)
}

// TestGateForgetsWhoWaits: a call that has passed and has to wait for its lock keeps nobody from the pool.
func TestGateForgetsWhoWaits(t *testing.T) {
	g := gateOf(1)
	g.begin(nil)
	g.begin(nil)
	var line []chan *pass
	for range 10 {
		line = append(line, queue(t, g))
	}
	g.onTheWay = time.Millisecond
	g.begun()
	for _, passed := range line {
		testwait.Until(t, "the call has passed", func() bool { return len(passed) == 1 })
	}
	testwait.Until(t, "none counts any more", func() bool { return g.passing.Load() == 0 })
}

// TestGateWithoutLimit: a pool without a limit is never exhausted.
func TestGateWithoutLimit(t *testing.T) {
	g := gateOf(0)
	for range 1000 {
		g.begin(nil)
	}
	if !g.open() {
		t.Error("the gate is closed")
	}
}

// TestGateIsLeft: a call goes on when it has waited for too long, and ends with its context.
func TestGateIsLeft(t *testing.T) {
	g := gateOf(1)
	g.begin(nil)
	g.begin(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := g.enter(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want that of the context", err)
	}
	g.longest = time.Millisecond
	if p, waited, err := g.enter(t.Context()); p != nil || waited < g.longest || err != nil {
		t.Errorf("pass %v after %v, %v", p, waited, err)
	}
	if g.queued.Load() != 0 || g.passing.Load() != 0 {
		t.Errorf("%d calls wait, %d are on their way", g.queued.Load(), g.passing.Load())
	}
}
