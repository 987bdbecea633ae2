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
func (s *series) again() bool {
	raced := s.last.overtaken()
	if raced {
		s.metrics.overtaken.Inc()
	}
	if !raced && !s.claimedInVain() && (s.last.outcome != notify.OutcomeRolledBack || !dbtx.Retryable(s.last.err)) {
		return false
	}
	if s.budget.spent() || s.held.alive() != nil || wait.Sleep(s.ctx, wait.After(s.budget.used, longestPause, longestPause<<6), nil) != nil {
		return false
	}
	if raced {
		s.keep(s.last.finding)
	}
	s.budget.used++
	s.metrics.retries.Inc()
	return true
}

// claimedInVain reports whether a claim was refused for one that is gone: it was purged.
func (s *series) claimedInVain() bool {
	f := s.last.finding
	return f != nil && onClaim(f.conflict) && !f.verdict.failure() && s.claims.purged()
}
