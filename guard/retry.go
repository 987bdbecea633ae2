package guard

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/notify"
)

// changeTries is how often a Change is run again.
const changeTries = 3

// longestPause is the longest pause before the second attempt. It doubles with each.
const longestPause = 4 * time.Millisecond

// again reports whether to make another attempt, and pauses before it.
func (c *call) again(e ending) bool {
	if !c.lostRace(e) && (e.outcome != notify.RolledBack || !dbguard.Retryable(e.err)) {
		return false
	}
	if c.tries >= c.retries || c.lease.Err() != nil || !rest(c.ctx, rand.N(longestPause<<min(c.tries, 6))) {
		return false
	}
	c.tries++
	c.guard.metrics.retries.Inc()
	return true
}

// lostRace reports whether an attempt without the lock was refused because another
// writer changed a row after the attempt had read it.
func (c *call) lostRace(e ending) bool {
	if c.without == nil || c.brought || e.finding == nil || e.outcome != notify.Refused {
		return false
	}
	conflict, v := e.finding.endedWith(e.err)
	return v == stale && conflict.Evidence.Changed
}

// rest reports whether ctx lasted for d.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
