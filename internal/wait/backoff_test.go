package wait_test

import (
	"math"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/wait"
)

func TestBoundsDoubleAndStartAgain(t *testing.T) {
	b := wait.Backoff{Min: 10, Max: 100}
	var longest [6]time.Duration
	for range 10_000 {
		for i := range longest {
			longest[i] = max(longest[i], b.Next())
		}
		b.Reset()
	}
	if want := [...]time.Duration{10, 20, 40, 80, 100, 100}; longest != want {
		t.Errorf("bounds %v, want %v", longest, want)
	}
}

func TestDelaysStayBelowTheirBound(t *testing.T) {
	b := wait.Backoff{Min: 100 * time.Millisecond, Max: 30 * time.Second}
	bound := b.Min
	for range 100 {
		if d := b.Next(); d < 0 || d > bound {
			t.Fatalf("delay %v, want 0 to %v", d, bound)
		}
		bound = min(2*bound, b.Max)
	}
}

func TestDelaysReachTheirBound(t *testing.T) {
	b := wait.Backoff{Min: time.Second, Max: 8 * time.Second}
	var longest time.Duration
	for range 1000 {
		longest = max(longest, b.Next())
	}
	if longest < 7*time.Second {
		t.Errorf("the longest of 1000 delays is %v, want nearly %v", longest, b.Max)
	}
}

func TestExtremeBounds(t *testing.T) {
	for _, b := range []wait.Backoff{
		{},
		{Min: time.Second},
		{Min: math.MaxInt64 / 3, Max: math.MaxInt64 - 1},
	} {
		for range 100 {
			if d := b.Next(); d < 0 {
				t.Fatalf("%+v: delay %v", b, d)
			}
		}
	}
}

func TestAfterGrowsToItsBound(t *testing.T) {
	for failures, bound := range map[int]time.Duration{
		-1: time.Second, 0: time.Second, 1: 2 * time.Second, 3: 8 * time.Second, 4: 10 * time.Second, math.MaxInt: 10 * time.Second,
	} {
		var longest time.Duration
		for range 1000 {
			longest = max(longest, wait.After(failures, time.Second, 10*time.Second))
		}
		if longest > bound || longest < bound*7/8 {
			t.Errorf("after %d failures the longest of 1000 delays is %v, want nearly %v", failures, longest, bound)
		}
	}
}

func TestBetween(t *testing.T) {
	for range 1000 {
		if d := wait.Between(10, 12); d != 10 && d != 11 {
			t.Fatalf("delay %d, want 10 or 11", d)
		}
	}
}
