package backoff_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/backoff"
)

func TestDelaysGrowToTheirBound(t *testing.T) {
	b := backoff.Backoff{Min: 100 * time.Millisecond, Max: 30 * time.Second}
	for range 2 {
		bound := b.Min
		for range 100 {
			if d := b.Next(); d < 0 || d > bound {
				t.Fatalf("delay %v, want 0 to %v", d, bound)
			}
			bound = min(2*bound, b.Max)
		}
		b.Reset()
	}
}

func TestDelaysReachTheirBound(t *testing.T) {
	b := backoff.Backoff{Min: time.Second, Max: 8 * time.Second}
	var longest time.Duration
	for range 1000 {
		longest = max(longest, b.Next())
	}
	if longest < 7*time.Second {
		t.Errorf("the longest of 1000 delays is %v, want nearly %v", longest, b.Max)
	}
}

func TestExtremeBounds(t *testing.T) {
	for _, b := range []backoff.Backoff{
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
			longest = max(longest, backoff.After(failures, time.Second, 10*time.Second))
		}
		if longest > bound || longest < bound*7/8 {
			t.Errorf("after %d failures the longest of 1000 delays is %v, want nearly %v", failures, longest, bound)
		}
	}
}

func TestSleepEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	backoff.Sleep(ctx, math.MaxInt64, nil)
	woken := make(chan struct{})
	close(woken)
	backoff.Sleep(t.Context(), math.MaxInt64, woken)
	backoff.Sleep(t.Context(), 0, nil)
}
