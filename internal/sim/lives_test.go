package sim

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/lock/lockengine"
)

// A life is the time in which a request counts as done: from the commit of its claim until
// that is purged, or lost.
type life struct {
	*commit
	id      string
	attempt int64
	answer  []byte // nil: none was stored
	refused bool
	ended   int // 0: it is there
	forgot  int // when the answer was gone; 0: not yet
	missed  int // the same, though a crash has brought it back
}

// claims reports whether a row is the claim of what o serves.
func (o *op) claims(name string) bool { return o.work.serves && name == o.claim() }

// held names what the claim of o was made under: the request's own key, or all the others.
func (o *op) held() string {
	if o.work.keyed {
		return o.lock()
	}
	return strings.Join(o.keys(), " ")
}

// effects returns how many rows o has committed if it returns nil.
func (o *op) effects() int {
	switch {
	case o.answer.Replayed:
		return 0
	case o.answer.Refused:
		return 1
	}
	return len(o.rows())
}

// repeats reports whether o was told that it repeats something.
func (o *op) repeats() bool {
	return o.answer.Replayed || slices.ContainsFunc([]error{guard.ErrDuplicate, guard.ErrStale, guard.ErrMismatch}, func(err error) bool { return errors.Is(o.err, err) })
}

// live compares the requests with what they were before a call, or a crash of the database.
func (h *history) live(c *call) {
	if !h.w.serves {
		return
	}
	claims, answers := h.w.db.Rows("belay_once"), h.w.db.Rows("belay_answer")
	for _, l := range h.lives {
		if l.ended > 0 {
			continue
		}
		if !slices.ContainsFunc(claims, func(r map[string]any) bool { return ids[r["request"].(string)] == l.id && r["attempt"] == l.attempt }) {
			l.ended = h.w.step
			l.lost, l.purged = c == nil, c != nil
			if l.purged {
				h.w.bank.forget(l.id)
			}
		}
	}
	for _, r := range claims {
		id := ids[r["request"].(string)]
		switch i := slices.IndexFunc(h.lives, func(l *life) bool { return l.id == id && l.attempt == r["attempt"] }); {
		case i < 0:
			h.begins(c, id, r)
		case h.lives[i].ended > 0: // a crash has lost the purge
			l := h.lives[i]
			l.ended, l.forgot, l.lost, l.purged = 0, 0, false, false
		}
	}
	for _, r := range answers {
		if id := ids[r["request"].(string)]; !slices.ContainsFunc(h.lives, func(l *life) bool { return l.id == id && l.ended == 0 }) {
			h.w.problem("S3: there is an answer to %s without its claim", id)
		}
	}
	for _, l := range h.lives {
		has := slices.ContainsFunc(answers, func(r map[string]any) bool { return ids[r["request"].(string)] == l.id })
		if l.answer != nil && l.forgot == 0 && (l.ended > 0 || !has) {
			l.forgot = h.w.step
			l.missed = cmp.Or(l.missed, l.forgot)
		}
	}
}

// begins notes that a request is done.
func (h *history) begins(c *call, id string, row map[string]any) {
	if c == nil || c.op == nil {
		h.w.problem("S3: the claim of %s came without a commit", id)
		return
	}
	l := &life{id: id, attempt: row["attempt"].(int64), commit: &commit{op: c.op, attempt: c.op.attemptOn(c.conn), step: h.w.step, row: request{id: id}.claim(), to: 1}}
	for _, r := range h.w.db.Rows("belay_answer") {
		if ids[r["request"].(string)] == id {
			l.answer, l.refused = []byte(r["body"].(string)), r["refused"] != int64(0)
		}
	}
	h.lives = append(h.lives, l)
	h.commits = append(h.commits, l.commit)
	c.op.commits = append(c.op.commits, l.commit)
}

// seen reports whether o may have seen a life of its request that is.
func (w *world) seen(o *op, is func(*life) bool) bool {
	return slices.ContainsFunc(w.history.lives, func(l *life) bool {
		return l.id == o.id && l.step <= o.ended && (l.ended == 0 || l.ended >= o.began) && is(l)
	})
}

// servedBeforeAPurge reports whether the request of o was purged, and served before by one that
// writes a row of o.
func (w *world) servedBeforeAPurge(o *op) bool {
	return slices.ContainsFunc(w.history.lives, func(l *life) bool {
		return l.id == o.id && l.purged && l.ended <= o.ended && slices.ContainsFunc(l.op.rows(), func(r row) bool { return o.writes(r.name) })
	})
}

// differs reports whether o asks for something else than what was done, as far as both say.
func (o *op) differs(l *life) bool {
	return o.content != "" && l.op.content != "" && o.content != l.op.content
}

// sameKeys reports whether another operation has made the claim of o under the same keys.
func (w *world) sameKeys(o *op) bool {
	return w.seen(o, func(l *life) bool { return l.op != o && l.op.held() == o.held() })
}

// isOpen reports whether the last transaction of o has not ended.
func (h *history) isOpen(o *op) bool {
	if len(o.attempts) == 0 {
		return false
	}
	last := o.attempts[len(o.attempts)-1]
	return h.open[last.conn] == last
}

// entered is S4: the operation of a request does not run beside another one whose
// transaction is open, nor once it has taken effect.
func (w *world) entered(o *op) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o.running = true
	if !w.history.isOpen(o) { // its session has ended, and another's claim is made
		return
	}
	for _, p := range w.history.ops {
		if p != o && p.id == o.id && p.running && p.process.killed == 0 && w.history.isOpen(p) {
			w.problem("S4: %s (%s) runs beside %s (%s), which serves the same request", o, o.work.name, p, p.work.name)
		}
	}
	for _, l := range w.history.lives {
		if l.id == o.id && l.ended == 0 {
			w.problem("S4: %s (%s) runs for what %s (%s) has done", o, o.work.name, l.op, l.op.work.name)
		}
	}
}

// checkLives is S3: what serves a request is committed with its claim, and all of it.
func (w *world) checkLives() {
	w.history.live(nil)
	for _, l := range w.history.lives {
		if l.op.work.calls { // C9
			continue
		}
		n, want := 0, len(l.op.rows())
		for _, k := range l.op.commits {
			if k.step == l.step {
				n++
			}
		}
		if l.refused {
			want = 1
		}
		if n != want || l.op.id != l.id {
			w.problem("S3: %s (%s) has committed the claim of %s, and %d of %d rows", l.op, l.op.work.name, l.id, n, want)
		}
	}
	for _, k := range w.history.commits {
		claimed := func(l *life) bool { return l.op == k.op && l.step == k.step }
		if k.op.work.serves && !k.op.work.calls && !slices.ContainsFunc(w.history.lives, claimed) {
			w.problem("S3: %s (%s) has committed %s without a claim", k.op, k.op.work.name, k.row)
		}
	}
}

// checkAnswer is S5: all answers to a request are the one that was stored with its claim.
func (w *world) checkAnswer(o *op) {
	if o.err != nil || !o.work.answers {
		return
	}
	body, err := json.Marshal(o.answer.Value)
	must(err)
	if !w.seen(o, func(l *life) bool {
		return string(l.answer) == string(body) && l.refused == o.answer.Refused && (l.op == o) != o.answer.Replayed && !o.differs(l)
	}) {
		w.problem("S5: %s (%s) got the answer %s (refused: %v, replayed: %v), which was not stored", o, o.work.name, body, o.answer.Refused, o.answer.Replayed)
	}
}

// checkDone is S6: ErrBusy for a request means that another has it, ErrDuplicate that it was
// done and has no answer, ErrMismatch that it asks for something else than what was done, or has
// no use for the refusal.
func (w *world) checkDone(o *op) {
	conflict, met := errors.AsType[*dbguard.ConflictError](o.err)
	repeat := errors.Is(o.err, guard.ErrDuplicate) // of the request and nothing else
	if !o.work.serves || met && conflict.Table != "belay_once" && !repeat {
		return
	}
	silent := func(l *life) bool {
		return !l.refused && (!o.work.answers || l.answer == nil || l.missed > 0 && l.missed <= o.ended)
	}
	other := func(l *life) bool { return o.differs(l) || l.refused && !o.work.answers }
	switch {
	case o.work.calls && errors.Is(o.err, guard.ErrMismatch) && slices.ContainsFunc(w.history.ops, func(p *op) bool { return p.id == o.id && p.began > 0 && p.content != o.content }): // its call is pending, perhaps
	case o.claimed() && !errors.Is(o.err, dbtx.ErrClaimed) && !w.contended(o): // or the database has said so
		w.problem("S6: %s (%s) is told that another has its request, and nobody has", o, o.work.name)
	case repeat && !w.seen(o, func(l *life) bool { return l.op != o && !o.differs(l) && silent(l) }):
		w.problem("S6: %s (%s) is told that it was done, and it was not, or has an answer", o, o.work.name)
	case errors.Is(o.err, guard.ErrMismatch) && !w.seen(o, func(l *life) bool { return l.op != o && other(l) }):
		w.problem("S6: %s (%s) is told that it asks for something else, and it does not", o, o.work.name)
	}
}

// claimed reports whether o was told that another transaction has its request.
func (o *op) claimed() bool {
	conflict, met := errors.AsType[*dbguard.ConflictError](o.err)
	return errors.Is(o.err, guard.ErrBusy) && (met && conflict.Table == "belay_once" || errors.Is(o.err, dbtx.ErrClaimed) || errors.Is(o.err, lockengine.ErrMarked))
}

// contended reports whether another transaction had the request of o at its time, or it was
// done then.
func (w *world) contended(o *op) bool {
	rival := func(p *op) bool {
		return p != o && p.id == o.id && slices.ContainsFunc(p.attempts, func(a *attempt) bool { return a.begun <= o.ended && (p.ended == 0 || p.ended >= o.began) })
	}
	return slices.ContainsFunc(w.history.ops, rival) || w.seen(o, func(*life) bool { return true })
}

// outcomeTime is for how long a guard looks for the outcome of a COMMIT.
const outcomeTime = 5 * time.Second

// checkResolved is S7: the claim proves what became of a COMMIT without an answer, unless
// the database can't be asked. Past the lease of a call's reservation another attempt may have the
// request, which was taken over or reserved anew. A takeover shows in its call, which begins later than the
// transaction of that COMMIT.
func (w *world) checkResolved(o *op) {
	var last *attempt // that was to be committed; those that look for its outcome follow
	for _, a := range o.attempts {
		if a.sent && a.wrote > 0 {
			last = a
		}
	}
	if !errors.Is(o.err, guard.ErrUnknown) || !o.work.serves || last == nil || o.breaks > 1 {
		return
	}
	calls := func(p *op) bool { return p != o && p.id == o.id && p.called != 0 && p.calledAt.After(last.at) }
	passed := o.work.calls && o.returned.Sub(last.at) >= callTimeout+4*outcomeTime && (w.contended(o) || slices.ContainsFunc(w.history.ops, calls))
	if o.returned.Sub(last.endedAt) < outcomeTime && !passed {
		w.problem("S7: %s (%s) does not know whether it was committed", o, o.work.name)
	}
}

// purges reports whether a call is of those that delete old requests.
func (c *call) purges() bool { return strings.HasSuffix(c.actor, "."+purges) }

// purgeTime is longer than the time between two purges.
const purgeTime = 2*time.Second + time.Millisecond

// mayAge reports whether requests may become old: while an operation with a claim is at
// work, or the outcome of its COMMIT is looked for, no time of that length passes.
func (w *world) mayAge() bool {
	if w.calling() {
		return false
	}
	return w.plan.purges && !w.calm && !slices.ContainsFunc(w.history.ops, func(o *op) bool {
		return o.ended == 0 && slices.ContainsFunc(o.attempts, func(a *attempt) bool {
			return a.sent || a.wrote > 0 && w.history.open[a.conn] == a
		})
	})
}

// calling reports whether an operation with a call is at work, or one is on its way.
func (w *world) calling() bool {
	return slices.ContainsFunc(w.ghosts, func(c *call) bool { return c.pays }) || slices.ContainsFunc(w.history.ops, func(o *op) bool {
		return o.work.calls && o.began > 0 && o.ended == 0 && o.process.killed == 0
	})
}

// giver returns the operation of a name whose context may end.
func (w *world) giver(name string) *op {
	for _, o := range w.history.ops {
		if o.name == name && o.began > 0 && o.ended == 0 && !o.gaveUp && o.process.killed == 0 {
			return o
		}
	}
	return nil
}

func (w *world) mayGiveUp(name string) bool { return w.giver(name) != nil }

func (w *world) giveUp(name string) {
	o := w.giver(name)
	if o == nil {
		return
	}
	o.gaveUp, o.gaveUpAt = true, time.Now()
	w.mu.Lock()
	end := o.giveUp
	w.mu.Unlock()
	end()
}
