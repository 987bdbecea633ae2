package web

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestCache(t *testing.T) {
	var c cache[int]
	found := 0
	get := func() int {
		n, err := c.get(t.Context(), func(context.Context) (int, error) { found++; return found, nil })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if get() != 1 {
		t.Error("it is not found")
	}
	c.took = time.Hour
	if get() != 1 {
		t.Error("what took an hour is found out again at once")
	}
	c.at = time.Now().Add(-(share + 1) * time.Hour)
	if get() != 2 {
		t.Error("what took an hour is kept for longer than its share")
	}
	c.took = 0
	if get() != 3 {
		t.Error("what took no time is kept")
	}
}

func TestCacheKeepsNoFailureForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c cache[int]
		asked, down := 0, true
		get := func() (int, error) {
			n, err := c.get(t.Context(), func(ctx context.Context) (int, error) {
				if asked++; down {
					<-ctx.Done()
				}
				return asked, ctx.Err()
			})
			return n, err
		}
		for range 3 {
			if _, err := get(); !errors.Is(err, context.DeadlineExceeded) || asked != 1 {
				t.Fatalf("asked %d times: %v", asked, err)
			}
		}
		down = false
		<-time.After(storeTimeout) // of the bubble's clock
		if n, err := get(); n != 2 || err != nil {
			t.Errorf("a failure is kept for longer than it took: %d, %v", n, err)
		}
		c.err, c.took, c.at = context.Canceled, 0, time.Now()
		if _, err := get(); err == nil {
			t.Error("a failure that took no time is not kept")
		}
		<-time.After(leastFailure)
		if n, err := get(); n != 3 || err != nil {
			t.Errorf("a failure that took no time is kept: %d, %v", n, err)
		}
	})
}

func TestCachesAreBounded(t *testing.T) {
	var c caches[int]
	first := c.of("0")
	if c.of("0") != first {
		t.Error("a cache is not found again")
	}
	for i := range 10 * maxCaches {
		c.of(time.Duration(i).String())
		if len(c.all) > maxCaches {
			t.Fatalf("%d caches", len(c.all))
		}
	}
}
