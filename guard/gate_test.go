package guard

import (
	"context"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testwait"
)

// gateOf returns a gate to a pool that has so many connections.
func gateOf(connections int) *gate {
	return &gate{connections: func() int { return connections }, longest: time.Hour}
}

// queue has a call wait at the gate, behind those that do.
func queue(t *testing.T, g *gate, ctx context.Context) (passed chan time.Duration) {
	t.Helper()
	passed = make(chan time.Duration, 1)
	before := g.queued.Load()
	go func() { passed <- g.pass(ctx) }()
	testwait.Until(t, "the call is in the line", func() bool { return g.queued.Load() == before+1 })
	return passed
}

// TestGate: calls pass in their order, as many as there is room for.
func TestGate(t *testing.T) {
	g := gateOf(1)
	for range 2 {
		if waited := g.pass(t.Context()); waited != 0 {
			t.Fatalf("a call has waited for %v at an open gate", waited)
		}
		g.begin()
	}
	var line []chan time.Duration
	for range 6 {
		line = append(line, queue(t, g, t.Context()))
	}
	next := func(why string, n int) {
		t.Helper()
		for range n {
			if waited := <-line[0]; waited <= 0 {
				t.Errorf("%s: a call has passed after %v", why, waited)
			}
			line = line[1:]
		}
		if got := g.queued.Load(); got != int64(len(line)) {
			t.Fatalf("%s: %d calls wait, want %d", why, got, len(line))
		}
	}
	g.begun()
	next("a transaction has begun", 1)
	g.begun()
	next("another one", 2)
	g.admit()
	next("a call has ended that has not begun one", 2)
	g.begin()
	g.begin()
	g.admit()
	next("others are as many as before", 0)
	g.begun()
	next("a transaction has begun", 1)
}

// TestGateWithoutLimit: a pool without a limit is never exhausted.
func TestGateWithoutLimit(t *testing.T) {
	g := gateOf(0)
	for range 1000 {
		g.begin()
	}
	if waited := g.pass(t.Context()); waited != 0 {
		t.Errorf("a call has waited for %v", waited)
	}
}

// TestGateIsLeft: a call goes on when its context ends, or when it has waited for too long.
func TestGateIsLeft(t *testing.T) {
	g := gateOf(1)
	g.begin()
	g.begin()
	ctx, cancel := context.WithCancel(t.Context())
	passed := queue(t, g, ctx)
	cancel()
	<-passed
	g.longest = time.Millisecond
	g.pass(t.Context())
	if n := g.queued.Load(); n != 0 {
		t.Errorf("%d calls wait", n)
	}
}
