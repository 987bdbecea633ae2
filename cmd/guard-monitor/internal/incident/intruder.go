package incident

import (
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

// degradedFor is how long an instance is taken to work without the lock after it
// has said that it does no more, for what it began before.
const degradedFor = time.Minute

// intruder explains a row that was written while the reporting caller held the
// lock, and Redis says that it did, or did not answer: by whom?
func (f Facts) intruder() Explanation {
	rows := []Evidence{f.itself()}
	if x, ok := f.lateHolder(rows); ok {
		return x
	}
	if x, ok := f.peer(rows); ok {
		return x
	}
	w := f.predecessor()
	x, found := f.fault(w)
	if !found {
		x, found = f.removal(f.beforeGrant(w))
	}
	if found {
		rows = append(rows, Evidence{At: f.Event.CaughtAt, Node: f.Event.Instance, Kind: EarlierHolder})
		return f.by(x, Low, rows)
	}
	health, healthy := f.health(w)
	rows = append(rows, health)
	if !healthy {
		return f.unknown(rows...)
	}
	rows = append(rows, Evidence{At: f.Event.CaughtAt, Kind: NoOtherHolder, Service: text.Clip(f.Event.Service, maxName)})
	return Explanation{Cause: Bypass, Confidence: Medium, Evidence: rows}
}

// predecessor is when an earlier holder may have lost the lock and still have
// believed in it when the row was written.
func (f Facts) predecessor() window {
	ev := f.Event
	from := ev.AcquiredAt
	if from.IsZero() {
		from = ev.CaughtAt
	}
	return window{from.Add(-ev.TTL), ev.CaughtAt}
}

// beforeGrant is the part of a window in which a removed key can have been an
// earlier holder's. Since the grant the lock was there, if Redis says that it was.
func (f Facts) beforeGrant(w window) window {
	if at := f.Event.AcquiredAt; f.Event.HolderAtConflict == notify.HolderSelf && at.After(w.from) && at.Before(w.to) {
		w.to = at
	}
	return w
}

// lateHolder finds another holder of the key that reports to have lost a lock and
// yet may have written: the cause of that loss explains both. Of the locks that an
// operation loses, it reports one.
func (f Facts) lateHolder(rows []Evidence) (Explanation, bool) {
	key := f.Event.Key
	for _, other := range f.Others {
		wrote := (other.Outcome == notify.OutcomeCommitted || other.Outcome == notify.OutcomeUnknown) &&
			other.Verdict != notify.VerdictDeadLetter && other.Verdict != notify.VerdictUndecided
		if other.Key != key && !slices.Contains(other.Keys, key) || other.ID == f.Event.ID || other.Verdict == notify.VerdictDegraded || !wrote ||
			other.Owner == f.Event.Owner || !f.together(other) {
			continue
		}
		his := f
		his.Event, his.Others = other, nil
		x := his.explain()
		if other.Key != key {
			rows = append(rows, Evidence{At: other.CaughtAt, Node: text.Clip(other.Instance, maxName), Kind: AlsoHeld,
				Report: &Report{Key: text.Clip(key, maxName)}})
		}
		x.Evidence = append(rows, x.Evidence...)
		return x, true
	}
	return Explanation{}, false
}

// together reports whether two holders were at work at the same time.
func (f Facts) together(other notify.Event) bool {
	a, b := f.Event, other
	return !began(a).After(b.CaughtAt.Add(skew)) && !began(b).After(a.CaughtAt.Add(skew))
}

// began is when an event's caller got the lock: at the latest a time to live before
// the event, if its clock was set since.
func began(ev notify.Event) time.Time {
	if ev.AcquiredAt.After(ev.CaughtAt) {
		return ev.CaughtAt.Add(-ev.TTL)
	}
	return ev.AcquiredAt
}

// peer finds an instance that said that it works without the lock.
func (f Facts) peer(rows []Evidence) (Explanation, bool) {
	from, to := f.predecessor().from.Add(-degradedFor), f.Event.CaughtAt.Add(skew)
	var shard map[string]bool
	for i, d := range f.Others {
		if d.Verdict != notify.VerdictDegraded || d.Service != f.Event.Service || d.CaughtAt.After(to) || f.degradedUntil(i).Before(from) {
			continue
		}
		if shard == nil {
			shard = f.shardNodes()
		}
		if !shard[d.Place.Node] && d.Key != f.Event.Key {
			continue
		}
		rows = append(rows, Evidence{At: d.CaughtAt, Node: d.Instance, Kind: PeerWithout, For: f.before(d.CaughtAt),
			Redis: text.Clip(d.Place.Node, maxName)})
		return Explanation{Cause: DegradedPeer, Confidence: Medium, Evidence: rows}, true
	}
	return Explanation{}, false
}

// degradedUntil is when the outage ended that a degraded event of Others is
// about, as far as is known: until then its instance worked without the lock.
func (f Facts) degradedUntil(i int) time.Time {
	d := f.Others[i]
	if d.Outcome != notify.OutcomeUnknown { // its end
		return d.CaughtAt
	}
	for _, next := range f.Others[i+1:] {
		if next.Verdict == notify.VerdictDegraded && next.Instance == d.Instance && next.Place.Node == d.Place.Node {
			return next.CaughtAt
		}
	}
	return f.Event.CaughtAt
}

// shardNodes are the nodes that keep, or kept, the locks of the event's shard, as
// far as the timeline shows.
func (f Facts) shardNodes() map[string]bool {
	nodes := map[string]bool{f.Event.Place.Node: true}
	for _, e := range f.Timeline {
		if !f.concerns(e) {
			continue
		}
		if e.Node != "" {
			nodes[e.Node] = true
		}
		if e.Peer != "" && e.Kind != watch.Split { // it may be of any shard then
			nodes[e.Peer] = true
		}
	}
	return nodes
}
