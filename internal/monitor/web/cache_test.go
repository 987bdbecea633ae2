package web

import (
	"context"
	"testing"
	"time"
)

func TestCache(t *testing.T) {
	var c cache[int]
	found := 0
	get := func(least time.Duration) int {
		n, _, err := c.get(t.Context(), least, func(context.Context) (int, error) { found++; return found, nil })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if first, again := get(time.Hour), get(time.Hour); first != 1 || again != 1 {
		t.Error("it is found out again within the least time")
	}
	if c.forget(); get(time.Hour) != 2 {
		t.Error("it is not forgotten")
	}
	c.took = time.Hour
	if get(0) != 2 {
		t.Error("what took an hour is found out again at once")
	}
	c.took = 0
	if get(0) != 3 {
		t.Error("what took no time is kept")
	}
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
