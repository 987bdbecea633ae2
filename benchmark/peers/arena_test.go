package main

import (
	"os"
	"sync"
	"testing"
)

func testArena(t *testing.T) *arena {
	t.Helper()
	path, err := newArena()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(path) })
	a, err := openArena(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	return a
}

func TestArenaWithExclusion(t *testing.T) {
	a := testArena(t)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 1000 {
				mu.Lock()
				a.pass(int64(i))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if got := a.broken(8000); got != 0 {
		t.Errorf("exclusion broken %d times under a mutex", got)
	}
}

func TestArenaSeesOverlap(t *testing.T) {
	a := testArena(t)
	a.inside.Add(1) // somebody else
	a.pass(1)
	if got := a.broken(1); got != 1 {
		t.Errorf("exclusion broken %d times, want 1", got)
	}
}

func TestArenaSeesLostAddition(t *testing.T) {
	a := testArena(t)
	a.pass(1)
	a.pass(2)
	a.sum.Add(-1) // as if both had read the same
	if got := a.broken(2); got != 1 {
		t.Errorf("exclusion broken %d times, want 1", got)
	}
}

func TestArenaIsShared(t *testing.T) {
	path, err := newArena()
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(path)
	one, err := openArena(path)
	if err != nil {
		t.Fatal(err)
	}
	defer one.close()
	two, err := openArena(path)
	if err != nil {
		t.Fatal(err)
	}
	defer two.close()

	if !one.pass(1) || one.pass(1) {
		t.Error("only the first pass of a caller is a hand-over")
	}
	if !two.pass(2) {
		t.Error("a caller of another process is another caller")
	}
	if got := one.broken(3); got != 0 {
		t.Errorf("exclusion broken %d times, want 0", got)
	}
}
