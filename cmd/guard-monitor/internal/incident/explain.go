package incident

import (
	"time"

	"github.com/belaygo/belay/notify"
)

// Explain finds the cause of an event. It claims no more than the rows that it
// returns as evidence say: Unknown is an answer, too, and has its own.
func Explain(f Facts) Explanation {
	x := f.explain()
	if f.Behind != 0 {
		x.Evidence = append(x.Evidence, corrected(f.Event, f.Behind))
	}
	if !f.Says.IsZero() {
		x.Evidence = append(x.Evidence, disbelieved(f.Event, f.Says))
	}
	for i := range x.Evidence {
		e := &x.Evidence[i]
		e.At, e.From, e.To = f.writable(e.At), f.writable(e.From), f.writable(e.To)
	}
	return x
}

// notJudged is for an event that could not be explained.
func notJudged(now time.Time) Explanation {
	return Explanation{Cause: Unknown, Confidence: Low, Evidence: []Evidence{{At: now.UTC(), Kind: NotExplained}}}
}

func (f Facts) explain() Explanation {
	ev := f.Event
	switch ev.Verdict {
	case notify.VerdictUnknownCommit:
		return Explanation{Cause: UnknownCommit, Confidence: High, Evidence: []Evidence{f.itself()}}
	case notify.VerdictCommitLost:
		return Explanation{Cause: CommitLost, Confidence: High, Evidence: []Evidence{f.itself()}}
	case notify.VerdictDeadLetter:
		return Explanation{Cause: ofLetter(ev), Confidence: High, Evidence: []Evidence{f.itself()}}
	case notify.VerdictUndecided:
		return Explanation{Cause: CallUndecided, Confidence: High, Evidence: []Evidence{f.itself()}}
	case notify.VerdictDegraded:
		return f.outage(DegradedPeer, High)
	case notify.VerdictUnavailable:
		return f.outage(Unreachable, Medium)
	}
	self := ev.HolderAtConflict == notify.HolderSelf
	doubtful := ev.HolderAtConflict == notify.HolderUnknown && ev.Loss == ""
	switch {
	case ev.Verdict == notify.VerdictOverlap && self:
		return f.intruder()
	case ev.Verdict == notify.VerdictOverlap && doubtful:
		if x := f.loss(); x.Cause != Unknown {
			return x
		}
		return f.intruder()
	}
	return f.loss()
}
