package main

import (
	"math"
	"testing"
	"time"
)

func TestQuantiles(t *testing.T) {
	var h histogram
	for i := 1; i <= 1000; i++ {
		h.add(time.Duration(i) * time.Microsecond)
	}
	c := make(counts)
	c.addAll(&h)

	for _, tt := range []struct {
		q    float64
		want time.Duration
	}{
		{0, time.Microsecond},
		{0.001, time.Microsecond},
		{0.5, 500 * time.Microsecond},
		{0.99, 990 * time.Microsecond},
		{1, 1000 * time.Microsecond},
	} {
		got := c.quantile(tt.q)
		if off := math.Abs(float64(got)/float64(tt.want) - 1); off > 0.01 {
			t.Errorf("quantile(%v) = %v, want %v within 1 %%", tt.q, got, tt.want)
		}
	}
}

func TestQuantileOfNothing(t *testing.T) {
	if got := make(counts).quantile(0.99); got != 0 {
		t.Errorf("quantile of no durations = %v, want 0", got)
	}
}

func TestHistogramTakesAnyDuration(t *testing.T) {
	var h histogram
	for _, d := range []time.Duration{-1, 0, 1, time.Hour, math.MaxInt64} {
		h.add(d)
	}
	if h[0] != 3 || h[buckets-1] != 2 {
		t.Errorf("first bucket has %d, last has %d; want 3 and 2", h[0], h[buckets-1])
	}
}

func TestCountsMerge(t *testing.T) {
	var a, b histogram
	a.add(time.Millisecond)
	b.add(time.Millisecond)
	b.add(time.Second)
	ofA, ofB := make(counts), make(counts)
	ofA.addAll(&a)
	ofB.addAll(&b)
	ofA.merge(ofB)

	if n := ofA[bucketOf(time.Millisecond)]; n != 2 {
		t.Errorf("%d durations of 1 ms, want 2", n)
	}
	if n := ofA[bucketOf(time.Second)]; n != 1 {
		t.Errorf("%d durations of 1 s, want 1", n)
	}
}
