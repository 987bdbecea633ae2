package incident

import (
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
)

// fault is something that happened to Redis and can take a lock away.
type fault struct {
	cause      Cause
	confidence Confidence
	at         time.Time // when it was seen
	rows       []watch.Entry
	notes      []Kind // what restricts it
}

// after reports whether another fault was over when this one was seen.
func (x fault) after(other fault) bool {
	return !slices.ContainsFunc(other.rows, func(e watch.Entry) bool { return !e.At.Before(x.at) })
}

// fault returns what happened to the lock's node in the window: a takeover or a
// restart, whichever was first, else that it is gone, cut off, or evicts keys. The
// end of a process whose place another node took is that failover.
func (f Facts) fault(w window) (fault, bool) {
	takeover, failed := f.takeover(w)
	restart, restarted := f.restart(w)
	switch {
	case failed && (!restarted || !restart.at.Before(takeover.at)):
		return takeover, true
	case restarted:
		return f.succeeded(restart), true
	}
	if gone, ok := f.dead(w); ok {
		return f.succeeded(gone), true
	}
	if cut, ok := f.cut(w); ok {
		return cut, true
	}
	return f.eviction(w)
}

// takeover finds another node in the place of the one that granted the lock. A
// lock that the new master itself granted is not explained by it.
func (f Facts) takeover(w window) (fault, bool) {
	for _, e := range f.find(w, watch.Failover) {
		if e.Node != f.Event.Place.Node {
			return f.failover(e), true
		}
	}
	return fault{}, false
}

// failover is the fault that an entry describes.
func (f Facts) failover(e watch.Entry) fault {
	x := fault{cause: Failover, confidence: High, at: e.At, rows: []watch.Entry{e}}
	if e.Peer != f.Event.Place.Node {
		x.confidence = Medium
		x.notes = append(x.notes, NotTheMaster)
	}
	if lost, ok := e.Numbers[watch.LostBytes]; ok && lost == 0 {
		x.notes = append(x.notes, NothingLost)
	}
	f.fate(&x, e)
	return x
}

// succeeded returns the failover if another node took the place of one whose
// process ended: a lock that was not renewed meanwhile is of the same accident.
func (f Facts) succeeded(end fault) fault {
	e := end.rows[0]
	latest := e.At.Add(skew)
	if e.Kind == watch.Down {
		latest = e.At.Add(time.Minute)
	}
	for _, next := range f.Timeline {
		switch {
		case next.At.Before(e.Since):
		case next.At.After(latest):
			return end
		case next.Kind == watch.Failover && next.Peer == e.Node:
			return f.failover(next)
		case e.Kind == watch.Down && next.At.After(e.At) && next.Kind == watch.Up && next.Node == e.Node:
			return end
		}
	}
	return end
}

// fate adds what became of the old master. If it lived on, it was cut off, and
// the others went on without it.
func (f Facts) fate(x *fault, failover watch.Entry) {
	pending := false
	kept := len(x.rows)
	for _, e := range f.Timeline {
		if e.Node != failover.Peer && e.Peer != failover.Peer {
			continue
		}
		if e.Kind == watch.Up && e.Node == failover.Peer && e.At.Before(failover.Since) { // another time
			x.rows, pending = x.rows[:kept], false
			continue
		}
		around := !e.Since.After(failover.At.Add(skew)) && !e.At.Before(failover.Since.Add(-skew))
		switch {
		case e.Kind == watch.Down && e.Node == failover.Peer && !e.At.After(failover.At.Add(time.Minute)) && !e.At.Before(failover.Since.Add(-time.Minute)):
			x.rows = append(x.rows, e)
			pending = e.Numbers[watch.Refused] == 0 && x.cause != Partition // that it lived on was seen
		case e.Kind == watch.Up && e.Node == failover.Peer && around && e.Numbers[watch.SameProcess] == 1,
			e.Kind == watch.Split && around:
			x.cause = Partition
			x.rows = append(x.rows, e)
			pending = false
		case e.Kind == watch.Restart && e.Node == failover.Peer && around && x.cause == Failover:
			x.rows = append(x.rows, e)
			pending = false
		}
	}
	if pending {
		x.confidence = Medium
		x.notes = append(x.notes, MasterMissing)
	}
}

// restart finds that the process that granted the lock was replaced.
func (f Facts) restart(w window) (fault, bool) {
	e, found := f.first(w, watch.Restart, func(e watch.Entry) bool { return e.Numbers[watch.WasMaster] == 1 })
	x := fault{cause: Restart, confidence: High, at: e.At, rows: []watch.Entry{e}}
	if kept := e.Numbers[watch.KeysAfter]; kept > 0 && kept >= e.Numbers[watch.KeysBefore] {
		x.confidence = Medium
		x.notes = append(x.notes, KeysKept)
	}
	return x, found
}

// dead finds that the process that granted the lock is gone, and that no other node
// has taken its place.
func (f Facts) dead(w window) (fault, bool) {
	e, found := f.first(w, watch.Down, func(e watch.Entry) bool { return e.Numbers[watch.Refused] == 1 })
	return f.away(e), found
}

// away is a node that went down, and its return as far as it was seen: the process
// is gone if connections were refused, else the node was cut off or stood still.
func (f Facts) away(down watch.Entry) fault {
	x := fault{cause: Partition, confidence: Medium, at: down.At, rows: []watch.Entry{down}}
	missing := NodeMissing
	gone := down.Numbers[watch.Refused] == 1
	if gone {
		x.cause, missing = Restart, ProcessMissing
	}
	for _, e := range f.Timeline {
		if e.Node == down.Node && e.At.After(down.At) && (e.Kind == watch.Up || gone && e.Kind == watch.Restart) {
			x.rows = append(x.rows, e)
			return x
		}
	}
	x.notes = []Kind{missing}
	return x
}

// cut finds that the node lived, but was not heard by all.
func (f Facts) cut(w window) (fault, bool) {
	node := f.Event.Place.Node
	for _, e := range f.find(w, watch.Split) {
		if e.Node == node || e.Peer == node && f.tookOver(e) {
			return fault{cause: Partition, confidence: Medium, at: e.At, rows: []watch.Entry{e}}, true
		}
	}
	e, found := f.first(w, watch.Up, func(e watch.Entry) bool { return e.Numbers[watch.SameProcess] == 1 && f.longEnough(e) })
	if found {
		return fault{cause: Partition, confidence: High, at: e.At, rows: []watch.Entry{e}}, true
	}
	e, found = f.first(w, watch.Down, func(e watch.Entry) bool { return e.Numbers[watch.Refused] == 0 })
	return f.away(e), found
}

// tookOver reports whether the peer of a split has taken the node's place, so
// that both act as the master. Another peer only says that it has no answer.
func (f Facts) tookOver(split watch.Entry) bool {
	for _, e := range f.Timeline {
		if e.Kind == watch.Failover && e.Node == split.Peer && e.Peer == split.Node {
			return true
		}
	}
	return false
}

// longEnough reports whether a silence can have kept a lock from being renewed:
// renewals are tried from a third of the time to live on.
func (f Facts) longEnough(e watch.Entry) bool {
	return time.Duration(e.Numbers[watch.SilentMS])*time.Millisecond >= f.Event.TTL/2
}

// together is how long apart the nodes of several shards may fail in one accident.
const together = 30 * time.Second

// maxOthers bounds the rows about other shards.
const maxOthers = 8

// alsoFailed returns what happened first to each other shard that failed in the same accident, or
// was flushed with the same command.
func (f Facts) alsoFailed(x fault) (list []watch.Entry) {
	first := x.rows[0]
	known := map[string]bool{"": true, first.Shard: true}
	for _, e := range f.Timeline {
		if !known[e.Shard] && apart(e, first) <= together && (failed(e) || e.Kind == watch.Flush && x.cause == Flushed) {
			known[e.Shard] = true
			list = append(list, e)
		}
	}
	return list[:min(len(list), maxOthers)]
}

// apart is how much time lies between two changes at least. Each lies between Since and At: a
// node that is seen to be restarted may have been away for long.
func apart(a, b watch.Entry) time.Duration {
	return max(a.Since.Sub(b.At), b.Since.Sub(a.At), 0)
}

// failed reports whether an entry says that a shard lost its master.
func failed(e watch.Entry) bool {
	switch e.Kind {
	case watch.Failover:
		return true
	case watch.Restart:
		return e.Numbers[watch.WasMaster] == 1
	case watch.Down:
		return e.Names[watch.Role] == "master"
	default:
		return false
	}
}

// eviction finds that keys went from the node.
func (f Facts) eviction(w window) (fault, bool) {
	e, found := f.first(w, watch.Eviction, func(e watch.Entry) bool { return e.Numbers[watch.Evicted] > 0 })
	return fault{cause: Eviction, confidence: Medium, at: e.At, rows: []watch.Entry{e}, notes: []Kind{EvictedUnknown}}, found
}
