package guard

import (
	"time"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/notify"
)

// changeTries is how often a Change is run again.
const changeTries = 3

// longestPause is the longest pause before the second attempt. It doubles with each.
const longestPause = 4 * time.Millisecond

// again reports whether to make another attempt, and pauses before it.
func (c *call) again(e ending) bool {
	if c.storesRefusal(e) {
		return true
	}
	if !c.lostRace(e) && !c.claimedInVain(e) && (e.outcome != notify.OutcomeRolledBack || !dbtx.Retryable(e.err)) {
		return false
	}
	if c.tries >= c.maxTries() || c.alive() != nil || wait.Sleep(c.ctx, wait.After(c.tries, longestPause, longestPause<<6), nil) != nil {
		return false
	}
	c.tries++
	c.guard.metrics.retries.Inc()
	return true
}

// claimTries is how often a claim is made again, before the operation has begun: when those
// who wait for a claim see it rolled back, the database lets one of them make it.
const claimTries = 10

func (c *call) maxTries() int {
	if c.claiming != nil && !c.claiming.begun {
		return max(c.retries, claimTries)
	}
	return c.retries
}

// lostRace reports whether an attempt without the lock, or on a server that was behind, was
// refused because another writer had changed a row that the attempt had read before.
func (c *call) lostRace(e ending) bool {
	if e.finding == nil || e.finding.verdict.failure() || c.brought || e.outcome != notify.OutcomeRefused {
		return false
	}
	conflict, v := e.finding.endedWith(e.err)
	return v == stale && conflict.Evidence.Changed && (conflict.Evidence.Behind || !e.finding.about(conflict).locked)
}
