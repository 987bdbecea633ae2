package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/belaygo/belay/guard"
)

// A begun is a call of the bank that has not returned.
type begun struct {
	op      *op
	attempt int64
	at      time.Time
}

// pending returns the row of what is open for a request, nil if nothing is.
func (w *world) pending(id string) map[string]any {
	for _, r := range w.db.Rows("belay_pending") {
		if ids[r["request"].(string)] == id {
			return r
		}
	}
	return nil
}

// begins notes that o calls the bank: C4 to C7. It returns what notes that the call has returned.
func (w *world) begins(o *op) (ends func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, row := time.Now(), w.pending(o.id)
	var attempt int64
	switch {
	case w.gate.isDead(o.process):
	case row == nil:
		w.problem("C7: %s calls for what is not pending", o)
	default:
		attempt = row["attempt"].(int64)
		o.called, o.calledAt, o.got = attempt, now, false
		if row["answered"] != int64(0) {
			w.problem("C4: %s calls, and the result is known", o)
		}
		if now.UnixMilli() > row["until_ms"].(int64)+1 { // the server cuts its clock to milliseconds
			w.problem("C5: %s calls behind Until", o)
		}
	}
	for _, other := range w.begun {
		switch {
		case other.op.id != o.id || other.op.process.killed > 0:
		case now.Sub(other.at) < callTimeout:
			w.problem("C6: %s calls beside %s", o, other.op)
		case other.attempt == attempt:
			w.problem("C7: %s and %s call for one attempt", o, other.op)
		}
	}
	b := &begun{o, attempt, now}
	w.begun = append(w.begun, b)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.begun = slices.DeleteFunc(w.begun, func(other *begun) bool { return other == b })
	}
}

// checkOpen is what holds of all that is committed. C8: a reservation is pending or settled, and is
// one of them. C9: a claim is of what is settled. C3: what was settled is the bank's answer.
func (w *world) checkOpen() {
	if !w.plan.calls() {
		return
	}
	held, billed, lived, open := make(map[string]int), make(map[string]int), make(map[string]int), make(map[string]int)
	for _, r := range w.db.Rows("holds") {
		held[r["request"].(string)]++
	}
	for _, r := range w.db.Rows("bills") {
		id := r["request"].(string)
		billed[id]++
		no := r["declined"] != false
		if billed[id] > w.billed[id] {
			w.checkSettled(id, r["op"].(string))
		}
		if billed[id] > w.billed[id] && !w.bank.said[said{id, no}] {
			w.problem("C3: %s has settled request %s (declined: %v), and the bank has not said that", r["op"], id, no)
		}
	}
	for _, r := range w.db.Rows("belay_pending") {
		open[ids[r["request"].(string)]]++
	}
	for _, l := range w.history.lives {
		if !l.lost && !l.refused {
			lived[l.id]++
		}
	}
	for id := range lockOf {
		if held[id] != billed[id]+open[id] {
			w.problem("C8: request %s has %d reservations, %d settlements, and %d pending", id, held[id], billed[id], open[id])
		}
		if lived[id] != billed[id] {
			w.problem("C9: request %s was claimed %d times, and settled %d times", id, lived[id], billed[id])
		}
	}
	w.billed = billed
}

// checkSettled is C7 for one who has settled a request: nobody has been calling since it has called.
func (w *world) checkSettled(id, name string) {
	var last *begun
	for _, b := range w.begun {
		if b.op.id == id && (last == nil || b.at.After(last.at)) {
			last = b
		}
	}
	for _, o := range w.history.ops {
		if o.name == name && last != nil && last.op != o && last.op.process.killed == 0 && last.attempt != o.called && (o.called == 0 || last.at.After(o.calledAt)) {
			w.problem("C7: %s has settled request %s while %s calls for it", o, id, last.op)
		}
	}
}

// checkKnown is C4 for a result that could not be settled: it is stored, unless something is in the way.
func (w *world) checkKnown(o *op) {
	if !o.got || o.cut != nil || o.breaks > 0 || o.gaveUp || !errors.Is(o.err, guard.ErrPending) {
		return
	}
	if row := w.pending(o.id); row != nil && row["attempt"] == o.called && row["answered"] == int64(0) {
		w.problem("C4: %s (%s) has got the result, and has neither settled nor stored it", o, o.work.name)
	}
}

// checkTold is C11: nobody is told that a request is done while it is pending.
func (w *world) checkTold(o *op) {
	if !o.work.calls || o.err != nil && !errors.Is(o.err, guard.ErrDuplicate) || w.pending(o.id) == nil {
		return
	}
	if !slices.ContainsFunc(w.history.lives, func(l *life) bool { return l.id == o.id && l.ended >= o.began }) {
		w.problem("C11: %s (%s) is told that it is done, and it is pending", o, o.work.name)
	}
}

// checkCall is I3 for an operation with a call: nil means that it has settled, or that another has.
func (w *world) checkCall(o *op) {
	settled := slices.ContainsFunc(w.history.lives, func(l *life) bool { return l.op == o && !l.lost })
	held := slices.ContainsFunc(w.db.Rows("holds"), func(r map[string]any) bool { return r["op"] == o.name })
	unsure := errors.Is(o.err, guard.ErrUnknown)
	open := errors.Is(o.err, guard.ErrPending) || errors.Is(o.err, errPanic)
	switch {
	case o.err == nil && settled == o.answer.Replayed:
		w.problem("I3: %s (%s) returned nil, and has settled: %v, and got a stored answer: %v", o, o.work.name, settled, o.answer.Replayed)
	case o.err != nil && settled && !unsure:
		w.problem("I3: %s (%s) returned an error, and has settled", o, o.work.name)
	case o.err != nil && held && !unsure && !open:
		w.problem("I3: %s (%s) returned an error, and has reserved", o, o.work.name)
	}
}
