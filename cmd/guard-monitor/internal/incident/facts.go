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
	Says    time.Time     // when it was caught by its instance's clock, if that is wrong by so much that its times here are not the event's; else zero
	Watched bool          // the node of the event belongs to a Redis that is watched
	Cluster string        // its name
	// SeenAt is when that Redis was last looked at, zero if it never answered:
	// later nothing is known.
	SeenAt time.Time
	// Timeline is what happened to that Redis from From on, the oldest first.
	From     time.Time
	Timeline []watch.Entry
	// Others are events that may explain this one: those of the same key, and
	// degraded ones of the same service.
	Others []notify.Event
}

// skew is by how much the clocks of hosts may differ without notice. What is more
// is measured by heartbeats, and corrected.
const skew = 500 * time.Millisecond

// lookBack bounds how long before an event facts are gathered, and how long
// after its arrival news can still change its explanation.
const lookBack = 15 * time.Minute

// writable is at, or the event's time instead of one that JSON cannot express: a
// foreign time less a time to live may lie before the year 0.
func (f Facts) writable(at time.Time) time.Time {
	if at = at.UTC(); at.Year() < 0 || at.Year() > 9999 {
		return f.Event.CaughtAt
	}
	return at
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

// intrudedUpon reports whether another caller may have written without the lock.
func intrudedUpon(ev notify.Event) bool {
	return ev.Verdict == notify.VerdictOverlap && (ev.HolderAtConflict == notify.HolderSelf || ev.HolderAtConflict == notify.HolderUnknown)
}
