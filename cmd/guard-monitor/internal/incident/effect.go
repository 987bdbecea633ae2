package incident

import (
	"github.com/belaygo/belay/notify"
)

// Effect counts what became of the operations of an incident's events.
type Effect struct {
	Failures  int64 `json:"-"`            // operations whose lock failed, or whose commit is or was in doubt: the next three, and commits found to have taken effect
	Undone    int64 `json:"rolled_back"`  // that were rolled back
	Committed int64 `json:"committed"`    // that were committed
	Unknown   int64 `json:"unknown"`      // of which neither is known
	Without   int64 `json:"without_lock"` // operations that were committed without a lock, as DBOnly allows
	Refused   int64 `json:"refused"`      // operations that were refused, since no lock could be acquired

	// Doubtful are keys of operations in Unknown, at most MaxDoubtful.
	Doubtful []string `json:"keys_in_doubt,omitempty"`
}

// MaxDoubtful bounds Effect.Doubtful.
const MaxDoubtful = 10

// Counts are the operations of an incident that an alert is sent again for as they become
// more: Failures, Without and Refused of an Effect.
type Counts struct {
	Failures int64 `json:"failures,omitempty"`
	Without  int64 `json:"without,omitempty"`
	Refused  int64 `json:"refused,omitempty"`
}

func (c *Counts) add(e Effect) {
	c.Failures += e.Failures
	c.Without += e.Without
	c.Refused += e.Refused
}

// EffectOf counts what became of the operations of one event, without Doubtful.
func EffectOf(v notify.Verdict, o notify.Outcome, count int64) (e Effect) {
	switch {
	case v == notify.VerdictDegraded && o == notify.OutcomeCommitted:
		e.Without = count
	case v == notify.VerdictUnavailable:
		e.Refused = count
	case v == notify.VerdictDeadLetter, v == notify.VerdictUndecided: // no lock and no commit has failed
	case v == notify.VerdictDegraded: // its begin, or none that took effect
	case o == notify.OutcomeUnknown:
		e.Failures, e.Unknown = count, count
	case v == notify.VerdictUnknownCommit && o == notify.OutcomeCommitted: // settled, with a lock that was well
		e.Failures = count
	case o == notify.OutcomeCommitted:
		e.Failures, e.Committed = count, count
	default:
		e.Failures, e.Undone = count, count
	}
	return e
}
