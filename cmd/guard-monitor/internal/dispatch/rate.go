package dispatch

import (
	"math"
	"slices"
	"time"
)

const ratePeriod = time.Minute

// rate counts the messages of the last minute. A token bucket would let twice
// its size through in a minute, and robots count minutes.
type rate struct {
	limit int // 0 = none
	times []time.Time
}

func (r *rate) allowed(now time.Time) int {
	if r.limit <= 0 {
		return math.MaxInt
	}
	r.times = slices.DeleteFunc(r.times, func(t time.Time) bool { return now.Sub(t) > ratePeriod })
	return max(r.limit-len(r.times), 0)
}

func (r *rate) add(now time.Time) {
	if r.limit > 0 {
		r.times = append(r.times, now)
	}
}
