package intake

import (
	"sync"
	"time"
)

// A budget is a token bucket: it allows burst requests at once, and one more in each interval.
// With an interval of 0 there is no limit. It is safe for concurrent use.
type budget struct {
	burst int64
	every time.Duration

	mu   sync.Mutex
	full time.Time // when the whole burst is available again
}

// newBudget returns a budget of so many requests a second, without a limit if that is 0.
func newBudget(perSecond, burst int64) *budget {
	b := &budget{burst: max(burst, 1)}
	if perSecond > 0 {
		b.every = time.Second / time.Duration(perSecond)
	}
	return b
}

// spend takes one request from the budget, or returns how long it is until there is one.
func (b *budget) spend(now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.every == 0 { // whoever comes second may have an earlier now
		return 0
	}
	used := max(0, b.full.Sub(now))
	if wait = used - time.Duration(b.burst-1)*b.every; wait > 0 {
		return wait
	}
	b.full = now.Add(used + b.every)
	return 0
}
