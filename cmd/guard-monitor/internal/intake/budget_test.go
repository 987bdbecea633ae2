package intake

import (
	"testing"
	"time"
)

// Requests that come at the same time may have their times in another order.
func TestNoLimitIsNone(t *testing.T) {
	b, now := newBudget(0, 0), time.Now()
	for n := range 3 {
		if wait := b.spend(now.Add(-time.Duration(n) * time.Millisecond)); wait != 0 {
			t.Errorf("request %d is to wait for %v", n, wait)
		}
	}
}
