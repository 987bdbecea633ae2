package incident

import (
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

// vanished reports whether the entry of the event's lock was seen to be gone, or
// another's: a command, or the end of its time to live, can have removed it.
func vanished(ev notify.Event) bool {
	taken := ev.HolderAtConflict == notify.HolderOther || ev.HolderAtConflict == notify.HolderNone
	return ev.Loss == notify.LossGone || ev.Loss == "" && taken
}

// flush finds that a command emptied the node that granted the lock.
func (f Facts) flush(w window) (fault, bool) {
	e, found := f.first(w, watch.Flush, func(watch.Entry) bool { return true })
	x := fault{cause: Flushed, confidence: High, at: e.At, rows: []watch.Entry{e}}
	switch {
	case e.Since.Before(w.from):
		x.confidence = Medium
		x.notes = []Kind{FlushedBefore}
	case e.Numbers[watch.FlushAll] == 0 && f.Event.Place.Slot < 0:
		x.confidence = Medium
		x.notes = []Kind{FlushedOne}
	}
	return x, found
}

// deletion finds that commands removed keys from the node that granted the lock,
// or that keys expired there before their time. Redis does not report which keys:
// where that is routine, as with Redisson, it says little.
func (f Facts) deletion(w window) (fault, bool) {
	var best fault
	usual, routine := f.routine(w)
	if routine {
		best = fault{cause: Deleted, confidence: Low, at: usual.At, rows: []watch.Entry{usual},
			notes: []Kind{RoutineUnknown}}
	}
	for _, e := range f.find(w, watch.Deletion, watch.ClockSet, watch.Expiry) {
		if e.Node != f.Event.Place.Node || e.Kind == watch.Deletion && routine {
			continue
		}
		x := fault{cause: Deleted, confidence: Low, at: e.At, rows: []watch.Entry{e}}
		switch {
		case e.Kind == watch.Deletion:
			x.confidence = Medium
			x.notes = []Kind{DeletedUnknown}
		case e.Kind == watch.ClockSet && forward(e) < f.Event.TTL/2: // what is renewed lives on
			continue
		case e.Kind == watch.ClockSet:
			x.confidence = Medium
		case e.Kind == watch.Expiry:
			x.notes = []Kind{NotExpired}
		}
		if x.confidence.weight() > best.confidence.weight() {
			best = x
		}
	}
	return best, best.cause != ""
}

// routine finds that keys are removed from the node all the time. One entry stands
// for some minutes of it.
func (f Facts) routine(w window) (watch.Entry, bool) {
	around := window{w.from.Add(-watch.RoutineEvery), w.to.Add(watch.RoutineEvery)}
	return f.first(around, watch.Deletion, func(e watch.Entry) bool { return e.Numbers[watch.Routine] == 1 })
}

func forward(e watch.Entry) time.Duration {
	return time.Duration(e.Numbers[watch.ForwardMS]) * time.Millisecond
}

// removal finds that keys were removed from the node in a way that is not routine
// there.
func (f Facts) removal(w window) (fault, bool) {
	if x, found := f.flush(w); found {
		return x, true
	}
	x, found := f.deletion(w)
	return x, found && x.confidence != Low
}
