package watch

import (
	"slices"
	"time"
)

// removed takes in the ways in which keys, and so locks, can have gone from a
// node whose process lives.
func (d *changes) removed(n, was *Node, l *look) {
	if was.SeenAt.IsZero() || was.RunID != n.RunID {
		n.evictions, n.flushes, n.deletions, n.expiries = tally{}, tally{}, tally{}, tally{}
		return
	}
	d.evicted(n, was)
	calls := l.removals(was)
	for _, name := range flushing {
		n.flushes.add(name, calls[name], was.SeenAt, n.SeenAt)
	}
	for _, name := range deleting {
		n.deletions.add(name, calls[name], was.SeenAt, n.SeenAt)
	}
	d.flushed(n, was, l)
	d.deleted(n, l)
	d.expired(n, was)
	d.clockSet(n, was)
}

func (d *changes) evicted(n, was *Node) {
	n.evictions.add(Evicted, n.Evicted-was.Evicted, was.SeenAt, n.SeenAt)
	if !n.evictions.due(n.SeenAt, tellEvery) {
		return
	}
	counts, from := n.evictions.take(n.SeenAt)
	counts[MaxMemory], counts["used_memory"] = n.MaxBytes, n.Memory
	d.about(n, Entry{Kind: Eviction, Since: from, Numbers: counts, Names: map[string]string{Policy: n.Policy}})
}

func (d *changes) flushed(n, was *Node, l *look) {
	if !n.flushes.due(n.SeenAt, n.flushes.pause()) {
		return
	}
	counts, from := n.flushes.take(n.SeenAt)
	names := callers(l.clients, counts, n.SeenAt.Sub(was.SeenAt))
	counts[KeysBefore], counts[KeysAfter] = was.Keys, n.Keys
	d.about(n, Entry{Kind: Flush, Since: from, Numbers: counts, Names: names})
}

func (d *changes) deleted(n *Node, l *look) {
	routine := n.deletions.routine() || slices.ContainsFunc(l.clients, client.java)
	if !n.deletions.due(n.SeenAt, n.deletions.pause()) {
		return
	}
	counts, from := n.deletions.take(n.SeenAt)
	names := callers(l.clients, counts, n.SeenAt.Sub(from))
	if routine {
		counts[Routine] = 1
	}
	d.about(n, Entry{Kind: Deletion, Since: from, Numbers: counts, Names: names})
}

// expired takes in that keys have expired. The entry of a lock that is held does
// not, unless its time to live was shortened. Where keys expire all the time, as
// markers do, that says nothing.
func (d *changes) expired(n, was *Node) {
	if n.Role != master || was.Role != master {
		return
	}
	n.expiries.add(Expired, n.Expired-was.Expired, was.SeenAt, n.SeenAt)
	if n.expiries.routine() {
		n.expiries.counts = nil
	}
	if !n.expiries.due(n.SeenAt, tellExpiry) {
		return
	}
	counts, from := n.expiries.take(n.SeenAt)
	d.about(n, Entry{Kind: Expiry, Since: from, Numbers: counts})
}

// setBy is the least change of a clock that makes an entry.
const setBy = time.Second

// clockSet notes that the clock of a node's host was set. Both looks are timed by
// this process' monotonic clock, which cannot be set.
func (d *changes) clockSet(n, was *Node) {
	if n.clock.Unix() == 0 || was.clock.Unix() == 0 || d.round.blind {
		return
	}
	forward := n.clock.Sub(was.clock) - n.SeenAt.Sub(was.SeenAt)
	if forward.Abs() < setBy+n.Took+was.Took {
		return
	}
	d.about(n, Entry{Kind: ClockSet, Since: was.SeenAt, Numbers: map[string]int64{ForwardMS: forward.Milliseconds()}})
}
