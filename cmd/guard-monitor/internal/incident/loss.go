package incident

import (
	"time"

	"github.com/belaygo/belay/notify"
)

// loss explains why the reporting caller's own lock went.
func (f Facts) loss() Explanation {
	ev := f.Event
	w := held(ev)
	rows := []Evidence{f.itself()}
	switch ev.Loss {
	case notify.LossMaxHold:
		return Explanation{Cause: Overrun, Confidence: High, Evidence: rows}
	case notify.LossExpired:
		return f.stoodStill(w, rows)
	}
	x, found := f.fault(w)
	flush, flushed := f.flush(w)
	restarted := found && x.cause == Restart && x.at.Before(flush.at) // there was no lock left to flush
	if flushed && !restarted && vanished(ev) {
		return f.because(flush, rows)
	}
	if found && f.fits(x) {
		return f.because(x, rows)
	}
	if x, found := f.deletion(w); found && vanished(ev) {
		return f.because(x, rows)
	}
	switch {
	case ev.Loss == notify.LossUnrenewed:
		return f.unreachable(w, rows)
	case found:
		return f.unknown(append(rows, f.rows(x)...)...)
	}
	health, healthy := f.health(w)
	rows = append(rows, health)
	if ev.Loss == "" && healthy && f.late() {
		return Explanation{Cause: Overrun, Confidence: Low, Evidence: rows}
	}
	return f.unknown(rows...)
}

// fits reports whether a fault can have led to what the holder found. A lock
// that was gone before its time was taken from a node: no silence does that,
// only what followed.
func (f Facts) fits(x fault) bool {
	switch f.Event.Loss {
	case notify.LossGone:
		return x.cause != Partition || len(x.rows) > 1 || x.rows[0].Kind == "split"
	case notify.LossUnrenewed:
		return x.cause != Eviction
	}
	return true
}

// stoodStill explains a lock that its holder did not even try to renew in time.
func (f Facts) stoodStill(w window, rows []Evidence) Explanation {
	health, healthy := f.health(w)
	x := Explanation{Cause: Overrun, Confidence: Medium, Evidence: append(rows, health)}
	if fault, found := f.fault(w); found {
		x.Evidence = append(x.Evidence, f.rows(fault)...)
		return x
	}
	if healthy && f.Event.TTL >= visible {
		x.Confidence = High
	}
	return x
}

// visible is the shortest time to live for which a stall of Redis that matters
// cannot hide between two looks.
const visible = 6 * time.Second

// unreachable explains renewals that went without an answer, though nothing was
// seen to happen to Redis.
func (f Facts) unreachable(w window, rows []Evidence) Explanation {
	health, healthy := f.health(w)
	rows = append(rows, health)
	if !healthy {
		return f.unknown(rows...)
	}
	return Explanation{Cause: Partition, Confidence: Medium, Evidence: rows, Everywhere: true} // the cut is at the instance
}

// late reports whether the event was caught when the lock, had it never been
// renewed, had run out.
func (f Facts) late() bool {
	ev := f.Event
	return ev.TTL > 0 && !ev.AcquiredAt.IsZero() && ev.CaughtAt.Sub(ev.AcquiredAt) >= ev.TTL
}

// health says whether the lock's node was seen to be well all the time.
func (f Facts) health(w window) (Evidence, bool) {
	node := f.Event.Place.Node
	e := Evidence{At: w.to, Node: node}
	gap, blind := f.blind(w)
	fault, found := f.fault(w)
	switch {
	case !f.Watched && node == "":
		e.Kind = NoNode
	case !f.Watched:
		e.Kind = NotWatched
	case blind:
		return gap, false
	case found:
		e.At, e.Kind = fault.at, Unwell
	default:
		e.Kind, e.From, e.To = Healthy, w.from, w.to
	}
	return e, e.Kind == Healthy
}

// because is the explanation by a fault.
func (f Facts) because(x fault, rows []Evidence) Explanation {
	c := x.confidence
	if c == High && f.Event.Loss == "" && f.Event.HolderAtConflict != notify.HolderOther && f.Event.HolderAtConflict != notify.HolderNone {
		c = Medium // the holder does not say that the lock was gone
	}
	return f.by(x, c, rows)
}

// by is the explanation by a fault, as sure as is said.
func (f Facts) by(x fault, sure Confidence, rows []Evidence) Explanation {
	others := f.alsoFailed(x)
	rows = append(rows, f.rows(x)...)
	for _, e := range others {
		rows = append(rows, Evidence{At: e.At, Node: e.Node, Kind: Seen, Entry: &e, For: f.before(e.At)})
	}
	return Explanation{Cause: x.cause, Confidence: sure, Evidence: rows, Everywhere: len(others) > 0}
}

func (f Facts) unknown(rows ...Evidence) Explanation {
	return Explanation{Cause: Unknown, Confidence: Low, Evidence: rows}
}
