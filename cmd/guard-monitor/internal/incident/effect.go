package incident

import (
	"fmt"
	"strings"

	"github.com/belaygo/belay/notify"
)

// Effect counts what became of the operations of an incident's events.
type Effect struct {
	Failures  int64 // operations whose lock failed, or whose commit is in doubt: the next three
	Undone    int64 // that were rolled back
	Committed int64 // that were committed
	Unknown   int64 // of which neither is known
	Without   int64 // operations that were committed without a lock, as DBOnly allows
	Refused   int64 // operations that were refused, since no lock could be acquired

	// Doubtful are keys of operations in Unknown, at most MaxDoubtful.
	Doubtful []string
}

// MaxDoubtful bounds Effect.Doubtful.
const MaxDoubtful = 10

// EffectOf counts what became of the operations of one event, without Doubtful.
func EffectOf(v notify.Verdict, o notify.Outcome, count int64) (e Effect) {
	switch {
	case v == notify.VerdictDegraded && o == notify.OutcomeCommitted:
		e.Without = count
	case v == notify.VerdictUnavailable:
		e.Refused = count
	case v == notify.VerdictDegraded: // its begin, or none that took effect
	case o == notify.OutcomeUnknown:
		e.Failures, e.Unknown = count, count
	case o == notify.OutcomeCommitted:
		e.Failures, e.Committed = count, count
	default:
		e.Failures, e.Undone = count, count
	}
	return e
}

// String joins Sentences, "" if there are none.
func (e Effect) String() string { return strings.Join(e.Sentences(), ". ") }

// Sentences say the effect on data, the worst first. The keys in them are text
// from anybody.
func (e Effect) Sentences() []string {
	var parts []string
	if e.Unknown > 0 {
		parts = append(parts, "look at "+these(e.Unknown)+", which may or may not have been committed"+e.keys())
	}
	if e.Undone > 0 {
		parts = append(parts, fmt.Sprintf("%s rolled back and changed nothing", were(e.Undone)))
	}
	if e.Committed > 0 {
		whose := "their"
		if e.Committed == 1 {
			whose = "its"
		}
		parts = append(parts, fmt.Sprintf(
			"%s committed though %s lock was lost, and no second writer got at rows that a unique index or a version covers", were(e.Committed), whose))
	}
	if e.Refused > 0 {
		parts = append(parts, fmt.Sprintf("%s refused and changed nothing", were(e.Refused)))
	}
	if e.Without > 0 {
		parts = append(parts, fmt.Sprintf("%s committed without a lock, guarded by the database alone", were(e.Without)))
	}
	return parts
}

// keys lists the doubtful keys, as in `, keys "order:1", "order:2" and others`.
func (e Effect) keys() string {
	if len(e.Doubtful) == 0 {
		return ""
	}
	quoted := make([]string, len(e.Doubtful))
	for i, key := range e.Doubtful {
		quoted[i] = quote(key)
	}
	list := ", keys " + strings.Join(quoted, ", ")
	if e.Unknown > int64(len(e.Doubtful)) && len(e.Doubtful) == MaxDoubtful {
		list += " and others"
	}
	return list
}

func these(n int64) string {
	if n == 1 {
		return "1 operation"
	}
	return "these " + operations(n)
}

func were(n int64) string {
	if n == 1 {
		return "1 operation was"
	}
	return operations(n) + " were"
}

func operations(n int64) string {
	if n == 1 {
		return "1 operation"
	}
	return fmt.Sprintf("%d operations", n)
}
