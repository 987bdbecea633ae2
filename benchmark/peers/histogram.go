package main

import (
	"math"
	"time"
)

// A histogram counts durations in buckets that are 1 % wide: bucket i begins at
// 1.01^i ns.
type histogram [buckets]uint32

const (
	growth  = 1.01
	buckets = 2600 // up to 170 s
)

func bucketOf(d time.Duration) int {
	if d < 1 {
		return 0
	}
	return min(int(math.Log(float64(d))/math.Log(growth)), buckets-1)
}

func (h *histogram) add(d time.Duration) { h[bucketOf(d)]++ }

// counts are the buckets of many histograms that are not empty.
type counts map[int]int64

func (c counts) addAll(h *histogram) {
	for i, n := range h {
		if n > 0 {
			c[i] += int64(n)
		}
	}
}

func (c counts) merge(other counts) {
	for i, n := range other {
		c[i] += n
	}
}

// quantile returns the duration that a share q of all does not exceed, to 1 %;
// 0 when there are none.
func (c counts) quantile(q float64) time.Duration {
	var total int64
	for _, n := range c {
		total += n
	}
	rank := max(1, int64(math.Ceil(q*float64(total))))
	var seen int64
	for i := range buckets {
		if seen += c[i]; seen >= rank {
			return time.Duration(math.Pow(growth, float64(i)+0.5))
		}
	}
	return 0
}
