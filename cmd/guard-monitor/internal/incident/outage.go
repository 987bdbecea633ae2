package incident

import (
	"strconv"
	"strings"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

// outage explains why an instance could not acquire locks: by what happened to
// Redis, else by the instance's own trouble.
func (f Facts) outage(own Cause, sure Confidence) Explanation {
	rows := []Evidence{f.itself()}
	w := window{f.Event.CaughtAt.Add(-degradedFor), f.Event.CaughtAt}
	if x, found := f.failing(w); found {
		return f.by(x, Medium, rows)
	}
	if down, ok := f.stopped(w); ok {
		return f.halted(down, w, own, sure)
	}
	health, healthy := f.health(w)
	if !healthy && own == Unreachable {
		sure = Low
	}
	return Explanation{Cause: own, Confidence: sure, Evidence: append(rows, health)}
}

// failing returns what happened to the node until the end of the window, or is still the
// case then.
func (f Facts) failing(w window) (fault, bool) {
	x, found := f.fault(w)
	if now, away := f.still(w); !found || x.cause == Eviction || away && now.after(x) {
		x, found = now, away
	}
	if found && x.cause == Partition { // whose place another node may have taken since
		x = f.succeeded(x)
	}
	return x, found
}

// halted explains why the event's node does not serve its slots: by what happened to another
// shard, as far as that was seen. It is the same accident as over there.
func (f Facts) halted(down watch.Entry, w window, own Cause, sure Confidence) Explanation {
	rows := append([]Evidence{f.itself()}, f.rows(fault{at: down.At, rows: []watch.Entry{down}})...)
	for _, e := range f.Timeline {
		if !failed(e) || e.Shard == "" || e.Shard == down.Shard {
			continue
		}
		there := f
		there.Event.Place = placeOf(e)
		if x, found := there.failing(w); found {
			why := there.by(x, Medium, rows)
			why.Elsewhere = there.Event.Place
			return why
		}
	}
	if own == Unreachable {
		sure = Low
	}
	return Explanation{Cause: own, Confidence: sure, Evidence: rows}
}

// placeOf is the master that an entry says its shard has lost.
func placeOf(e watch.Entry) notify.Place {
	p := notify.Place{Node: e.Node, Slot: -1}
	if e.Kind == watch.Failover {
		p.Node = e.Peer
	}
	rest := strings.TrimLeft(e.Shard, "0123456789")
	if slot, err := strconv.Atoi(strings.TrimSuffix(e.Shard, rest)); err == nil {
		p.Slot = slot
	}
	return p
}

// still finds that the node has not answered since before the window.
func (f Facts) still(w window) (fault, bool) {
	var last watch.Entry
	for _, e := range f.Timeline {
		if e.Node == f.Event.Place.Node && (e.Kind == watch.Down || e.Kind == watch.Up) && !e.At.After(w.to.Add(skew)) {
			last = e
		}
	}
	switch {
	case !f.Watched || last.Kind != watch.Down:
		return fault{}, false
	case last.Numbers[watch.Refused] == 1:
		return f.succeeded(f.away(last)), true
	}
	return f.away(last), true
}

// stopped finds that the node answered, but did not serve its slots: another shard
// of its cluster may have had no master.
func (f Facts) stopped(w window) (down watch.Entry, stopped bool) {
	if !f.Watched {
		return down, false
	}
	for _, e := range f.Timeline {
		switch {
		case e.Node != f.Event.Place.Node || e.Since.After(w.to.Add(skew)):
		case e.Kind == watch.ClusterDown:
			down, stopped = e, true
		case e.Kind == watch.ClusterOK && e.At.Before(w.from.Add(-skew)):
			stopped = false
		}
	}
	return down, stopped
}
