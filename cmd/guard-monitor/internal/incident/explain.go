package incident

import (
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

// Facts are what an explanation is made from. Explain reads nothing else, not
// even the clock.
type Facts struct {
	Event   notify.Event
	Behind  time.Duration // how much its instance's clock is behind, which its times here are not
	Watched bool          // the node of the event belongs to a Redis that is watched
	Cluster string        // its name
	// SeenAt is when that Redis was last looked at, zero if it never answered:
	// later nothing is known.
	SeenAt time.Time
	// Timeline is what happened to that Redis from From on, the oldest first.
	From     time.Time
	Timeline []watch.Entry
	// Others are events that may tell more: those of the same key, and degraded
	// ones of the same service.
	Others []notify.Event
}

// Explanation is why an event came to pass, as far as the evidence tells.
type Explanation struct {
	Cause      Cause
	Confidence Confidence
	Evidence   []Evidence
}

// skew is by how much the clocks of hosts may differ without notice. What is more
// is measured by heartbeats, and corrected.
const skew = 500 * time.Millisecond

// Explain finds the cause of an event. It claims no more than the rows that it
// returns as evidence say: Unknown is an answer, too, and has its own.
func Explain(f Facts) Explanation {
	x := f.explain()
	if f.Behind != 0 {
		x.Evidence = append(x.Evidence, corrected(f.Event, f.Behind))
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

// writable is at, or the event's time instead of one that JSON cannot express: a
// foreign time less a time to live may lie before the year 0.
func (f Facts) writable(at time.Time) time.Time {
	if at = at.UTC(); at.Year() < 0 || at.Year() > 9999 {
		return f.Event.CaughtAt
	}
	return at
}

func (f Facts) explain() Explanation {
	ev := f.Event
	switch ev.Verdict {
	case notify.VerdictUnknownCommit:
		return Explanation{Cause: UnknownCommit, Confidence: High, Evidence: []Evidence{f.itself()}}
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

func (f Facts) unknown(rows ...Evidence) Explanation {
	return Explanation{Cause: Unknown, Confidence: Low, Evidence: rows}
}

// window is when a lock may have gone: since it was last known to be there.
type window struct{ from, to time.Time }

// held is the window of an event: from the grant, or the last renewal, until it
// was caught.
func held(ev notify.Event) window {
	w := window{ev.AcquiredAt, ev.CaughtAt}
	if renewed := ev.Deadline.Add(-ev.TTL); !ev.Deadline.IsZero() && renewed.After(w.from) {
		w.from = renewed
	}
	if w.from.IsZero() || w.from.After(w.to) {
		w.from = w.to.Add(-ev.TTL)
	}
	return w
}

// meets reports whether a change, which lies between Since and At of an entry,
// can lie in the window.
func (w window) meets(e watch.Entry) bool {
	return !e.At.Before(w.from.Add(-skew)) && !e.Since.After(w.to.Add(skew))
}

// blind returns why nothing is known of a part of the window, if that is so.
func (f Facts) blind(w window) (Evidence, bool) {
	node := f.Event.Place.Node
	switch {
	case w.from.Before(f.From):
		return Evidence{At: w.from, Node: node, Kind: TooLongAgo}, true
	case f.SeenAt.IsZero():
		return Evidence{At: w.to, Node: node, Kind: NeverAnswered}, true
	case w.to.After(f.SeenAt.Add(skew)):
		return Evidence{At: f.SeenAt, Node: node, Kind: NotLookedAt}, true
	}
	for _, e := range f.Timeline {
		if e.Kind == watch.Watching && (e.Node == "" || e.Node == node) && !e.At.Before(w.from) && !e.Since.After(w.to) {
			return Evidence{At: e.At, Node: node, Kind: NobodyLooked, Entry: &e}, true
		}
	}
	return Evidence{}, false
}

// concerns reports whether an entry is about the place where the event's lock
// was kept.
func (f Facts) concerns(e watch.Entry) bool {
	p := f.Event.Place
	if p.Node != "" && (e.Node == p.Node || e.Peer == p.Node) {
		return true
	}
	if p.Slot >= 0 {
		return e.Shard != "" && watch.InShard(e.Shard, p.Slot)
	}
	return e.Kind == watch.Failover
}

// find returns the entries of the kinds about the lock's place that meet the
// window.
func (f Facts) find(w window, kinds ...watch.Kind) (found []watch.Entry) {
	if !f.Watched {
		return nil
	}
	for _, e := range f.Timeline {
		if slices.Contains(kinds, e.Kind) && w.meets(e) && f.concerns(e) {
			found = append(found, e)
		}
	}
	return found
}

// first returns the first of these entries that is about the lock's node itself and
// satisfies is.
func (f Facts) first(w window, kind watch.Kind, is func(watch.Entry) bool) (watch.Entry, bool) {
	for _, e := range f.find(w, kind) {
		if e.Node == f.Event.Place.Node && is(e) {
			return e, true
		}
	}
	return watch.Entry{}, false
}
