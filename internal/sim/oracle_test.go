package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/notify"
)

// learn takes in what an operation was told.
func (w *world) learn(o *op) {
	w.mu.Lock() // those whom a timer wakes next do not know that the scheduler has come first
	defer w.mu.Unlock()
	w.checkTold(o)
	w.checkKnown(o)
	w.checkRest(o)
	if p, ok := errors.AsType[*guard.PendingError](o.err); ok && p.Undecided {
		w.undecided[o.id] = w.calm
	}
	if held, ok := errors.AsType[*lockengine.HeldError](o.err); ok {
		w.ownGhost(o, held)
	}
}

// ownGhost is I8: nobody is rejected because of a lock that its own Locker has taken and
// that nobody uses, unless the request that would have released it went astray.
func (w *world) ownGhost(o *op, held *lockengine.HeldError) {
	g := w.history.grants[held.Holder.Owner]
	if g == nil || g.process != o.process || o.wait > 0 || o.cut != nil || g.regained >= o.began {
		return
	}
	for _, other := range w.history.ops {
		if other != o && other.process == o.process && other.has(held.Key) && other.uses(o) {
			return
		}
	}
	w.problem("I8: %s is told that %q is held by a lock of its own process that nobody uses", o, held.Key)
}

// uses reports whether o may use its lock, or have it protected, while until runs.
func (o *op) uses(until *op) bool {
	return o.began > 0 && (o.ended == 0 || o.ended >= until.began || errors.Is(o.err, guard.ErrUnknown) || errors.Is(o.err, lock.ErrLost))
}

// check looks at the whole history.
func (w *world) check() {
	w.checkLeft()
	if w.db == nil {
		return
	}
	w.checkVersions()
	for _, o := range w.history.ops {
		if !o.work.writes() || o.ended == 0 {
			continue
		}
		w.checkResult(o)
		w.checkWait(o)
		w.checkAnswer(o)
		w.checkDone(o)
		w.checkResolved(o)
		w.checkRepeat(o)
		w.checkConflict(o)
		w.checkUnavailable(o)
		w.checkUnknown(o)
		w.checkEvents(o)
	}
	if w.plan.policy == guard.FailClosed { // or nobody knows which transaction had a lock
		for _, g := range w.history.ordered() {
			w.checkLoss(g)
		}
		for _, k := range w.history.commits {
			w.checkOverlaps(k)
		}
	}
	w.checkLives()
	w.checkListed()
	w.checkOutages()
	w.checkRelay()
	w.checkDelivered()
	w.checkHandled()
}

// checkLeft is I8, too: in the end a Locker has released what it does not use, but for
// the locks of unknown commits, requests that were executed when it had given them up, and its
// last try.
func (w *world) checkLeft() {
	if w.plan.lasting == noLocks && w.server.down {
		return
	}
	for key, e := range w.server.state.held {
		g := w.history.grants[e.owner]
		if g == nil || g.process.killed > 0 || g.regained > 0 || g.took > ttl*9/10 || g.givenUp(e.expires) {
			continue
		}
		unsure := func(o *op) bool { return errors.Is(o.err, guard.ErrUnknown) || errors.Is(o.err, lock.ErrLost) }
		if !slices.ContainsFunc(w.history.users(g), unsure) {
			w.problem("I8: the lock on %q of %s is left behind", key, g.process.name)
		}
	}
}

// givenUp reports whether a release that was not answered was the last one: its Locker releases a lock
// again, ttl/10 later, until that has expired by what it knows.
func (g *grant) givenUp(expires time.Time) bool {
	if !g.known {
		expires = g.asked.Add(ttl)
	}
	return !g.astray.IsZero() && !g.astray.Before(expires.Add(-ttl/10))
}

// checkVersions is I1 and I2: a row is inserted once, and each of its versions is the base
// of one commit.
func (w *world) checkVersions() {
	type base struct {
		row  string
		from int64
	}
	seen := make(map[base]*commit)
	for _, k := range w.history.commits {
		b := base{k.row, k.from}
		if k.lost || k.purged {
			continue
		}
		if other := seen[b]; other != nil {
			name := "I2"
			if k.from == 0 {
				name = "I1"
			}
			w.problem("%s: %s and %s have both changed %s from version %d", name, other.op, k.op, k.row, k.from)
		}
		seen[b] = k
	}
	for _, table := range []string{"stocks", "wares"} {
		for _, r := range w.db.Rows(table) {
			if r["left"].(int64) != full-r["version"].(int64)+1 {
				w.problem("I2: a row of %s has version %v, and %v left", table, r["version"], r["left"])
			}
		}
	}
	w.checkSums()
}

// checkSums is I2 for rows that name who has changed them: each has what these changes
// leave, and a transfer has changed both of its rows, or none.
func (w *world) checkSums() {
	for _, table := range []string{"accounts", "purses"} {
		named := make(map[*op]int)
		for _, r := range w.db.Rows(table) {
			row, left := fmt.Sprintf("%s/%d", table, r["id"]), int64(full)
			names := strings.Fields(r["names"].(string))
			for _, o := range w.history.ops {
				if slices.Contains(names, o.name) {
					named[o]++
					left += o.adds(row)
				}
			}
			if left != r["left"].(int64) || int64(len(names)) != r["version"].(int64)-1 {
				w.problem("I2: %s has %v left in version %v, changed by %v", row, r["left"], r["version"], names)
			}
		}
		for o, n := range named {
			if want := len(o.work.other) + 1; n != want {
				w.problem("I3: %s (%s) has changed %d rows of %d", o, o.work.name, n, want)
			}
		}
	}
}

// checkResult is I3: nil means that the operation's own commit took effect, any error but
// ErrUnknown that none did.
func (w *world) checkResult(o *op) {
	if o.work.calls {
		w.checkCall(o)
		return
	}
	commits, lost := 0, 0
	for _, k := range o.commits {
		if commits++; k.lost {
			lost++
		}
	}
	switch {
	case o.err == nil && commits-lost != o.effects():
		w.problem("I3: %s (%s) returned nil, and has committed %d of %d rows, %d of which are lost", o, o.work.name, commits, o.effects(), lost)
	case o.err != nil && !errors.Is(o.err, guard.ErrUnknown) && commits > lost && !o.work.bare:
		w.problem("I3: %s (%s) returned an error, and has committed", o, o.work.name)
	}
}

// longest is how much longer than its Wait an operation may take if the database is silent:
// the time that its crew may hold the lock, and then its own.
const longest = 15 * time.Minute

// checkWait is S2: a Wait lasts as long as it says, and ends.
func (w *world) checkWait(o *op) {
	if _, held := errors.AsType[*lockengine.HeldError](o.err); held && errors.Is(o.err, guard.ErrBusy) && o.took < o.wait && !o.gaveUp && !o.claimed() && !o.work.calls {
		w.problem("S2: %s has waited %v of %v", o, o.took, o.wait)
	}
	if o.took > o.wait+longest && !o.work.bare {
		w.problem("S2: %s has taken %v, and waits %v", o, o.took, o.wait)
	}
}

// checkHeld is S2 for those whose contexts have ended: none of their statements goes on for
// longer than a guard takes to end a transaction.
func (w *world) checkHeld() {
	for _, c := range w.gate.calls() {
		if c.op == nil || c.db == nil || c.op.work.bare || !c.op.gaveUp || expired(c) {
			continue
		}
		if held := min(time.Since(c.at), time.Since(c.op.gaveUpAt)); held > outcomeTime+time.Second {
			w.problem("S2: the context of %s has ended, and %v later it still waits for %s", c.op, held, c.text)
		}
	}
}

// checkRepeat is I11: a repeat repeats something. Whether that was there before is I5.
func (w *world) checkRepeat(o *op) {
	if !errors.Is(o.err, guard.ErrDuplicate) && !errors.Is(o.err, guard.ErrStale) {
		return
	}
	met := slices.ContainsFunc(w.history.commits, func(k *commit) bool { return k.op != o && o.writes(k.row) && k.step <= o.ended })
	if !met {
		w.problem("I11: %s (%s) is told that it is a repeat, and nobody has written its rows", o, o.work.name)
	}
}

// checkConflict is S8: nobody is told of a business conflict who has none. All write their
// rows under the keys that protect them: whoever is refused repeats something, or may ask
// again. What a row was before can't be told if the connection breaks. A request that was purged
// is served anew, and meets its own row: ErrExists, or the conflict if no key names the row.
func (w *world) checkConflict(o *op) {
	conflict, met := errors.AsType[*dbguard.ConflictError](o.err)
	if !met || guard.ResultOf(o.err) != "conflict" || o.work.bare || o.work.meets || o.broke() > 0 && !conflict.Evidence.Changed {
		return
	}
	if (errors.Is(o.err, guard.ErrExists) || o.work.keyed && !o.work.named) && w.servedBeforeAPurge(o) {
		return
	}
	w.problem("S8: %s (%s) is told of a business conflict, and has none: %v", o, o.work.name, o.err)
}

// hesitation is how long a lock may take to answer before it counts as unavailable.
const hesitation = 500 * time.Millisecond

// checkUnavailable is S9: nobody is told that the lock is unavailable whose own time was too
// short for an answer.
func (w *world) checkUnavailable(o *op) {
	h := w.history
	if errors.Is(o.err, guard.ErrUnavailable) && w.plan.policy == guard.FailClosed && h.cutOff == 0 && h.silent < hesitation {
		w.problem("S9: %s (%s) is told that the lock is unavailable, and no request was silent for longer than %v: %v", o, o.work.name, h.silent, o.err)
	}
}

// checkUnknown is I4: after a commit of unknown outcome nobody of the same process gets
// the key before the lease would have ended.
func (w *world) checkUnknown(o *op) {
	if !errors.Is(o.err, guard.ErrUnknown) || len(o.attempts) == 0 {
		return
	}
	for key, g := range o.attempts[len(o.attempts)-1].grants {
		if g.until > 0 && g.until <= o.ended || w.plan.policy == guard.DBOnly {
			continue
		}
		deadline := g.asked.Add(ttl * 9 / 10)
		for _, other := range w.history.ops {
			if other.process != o.process || !other.has(key) || other.work.bare {
				continue
			}
			for _, a := range other.attempts {
				if a.begun > o.ended && a.at.Before(deadline) {
					w.problem("I4: %s began under the key of %s, whose commit is unknown", other, o)
				}
			}
		}
	}
}

var failures = []notify.Verdict{notify.VerdictOverlap, notify.VerdictLost, notify.VerdictUnknownCommit}

// checkEvents is I7: one event for each Do at most, and one if it says so; and I6: no event
// without a reason.
func (w *world) checkEvents(o *op) {
	own, may := len(o.failures()), 1
	switch {
	case o.work.combines:
		may = 2 // one is about the lock of its crew, which it may have shared unseen
	case o.work.calls:
		may = o.losses() // it goes on under another lock
	}
	if own > may {
		w.problem("I7: %s has reported %d events", o, own)
	}
	if caught, ok := errors.AsType[*guard.InterceptionError](o.err); ok {
		w.checkCaught(o, caught.Event)
	}
	if errors.Is(o.err, guard.ErrUnknown) && !slices.ContainsFunc(w.history.ops, func(other *op) bool { return len(other.failures()) > 0 && other.speaksFor(o) }) {
		w.problem("I7: %s is of unknown outcome, and has not reported it", o)
	}
	for _, ev := range o.failures() {
		switch {
		case !o.has(ev.Key):
			w.problem("I7: %s has reported %s of %q", o, ev.Verdict, ev.Key)
		case ev.Table == "belay_once" && !w.sameKeys(o):
			w.problem("I6: %s has reported %s of %q for a claim that nobody has made under the same keys", o, ev.Verdict, ev.Key)
		case ev.Verdict != notify.VerdictUnknownCommit && !w.reason(ev):
			w.problem("I6: %s has reported %s of %q, and no lock has failed", o, ev.Verdict, ev.Key)
		}
	}
}

// checkCaught is I7 for the event that o returned, which is about all those of a crew that
// return it.
func (w *world) checkCaught(o *op, ev notify.Event) {
	told, reported := 0, 0
	for _, other := range w.history.ops {
		if other.speaksFor(o) && slices.ContainsFunc(other.events, func(known notify.Event) bool { return known.ID == ev.ID }) {
			reported++
		}
		if caught, ok := errors.AsType[*guard.InterceptionError](other.err); ok && caught.Event.ID == ev.ID {
			told++
		}
	}
	if reported != 1 {
		w.problem("I7: %s was told of an event that its callers have reported %d times", o, reported)
	}
	if told != ev.Count && o.process.killed == 0 {
		w.problem("I7: an event stands for %d calls, and %d were told of it", ev.Count, told)
	}
}

// reason reports whether a lock on the key of an event has failed, or was not renewed as it
// says, somebody wrote without one, or the outcome of a COMMIT was not known.
func (w *world) reason(ev notify.Event) bool {
	for _, g := range w.history.grants {
		short := g.took > ttl/3 && ev.Loss == notify.LossExpired // the answer left little of its time
		if g.key == ev.Key && (g.lost() || g.regained > 0 || g.doubted && ev.Loss == notify.LossUnrenewed || short) {
			return true
		}
	}
	for _, other := range w.history.ops {
		if !other.has(ev.Key) {
			continue
		}
		if other.work.bare && other.began > 0 || slices.ContainsFunc(other.attempts, func(a *attempt) bool { return a.cut }) {
			return true
		}
	}
	return w.plan.policy == guard.DBOnly
}

// reported reports whether there is an event about a grant.
func (h *history) reported(g *grant) bool {
	return g != nil && slices.ContainsFunc(h.events, func(ev notify.Event) bool { return ev.Owner == g.owner })
}

// reportedLost reports whether there is an event that says that a lock failed, and not only
// that the outcome of a COMMIT is unknown.
func (h *history) reportedLost(g *grant) bool {
	return slices.ContainsFunc(h.events, func(ev notify.Event) bool {
		return ev.Owner == g.owner && ev.Verdict != notify.VerdictUnknownCommit
	})
}

// users returns the operations that had a transaction under a grant.
func (h *history) users(g *grant) (users []*op) {
	for _, o := range h.ops {
		if slices.ContainsFunc(o.attempts, func(a *attempt) bool { return a.grants[g.key] == g }) {
			users = append(users, o)
		}
	}
	return users
}

// checkLoss is I5 for one who has lost a lock: a lock that was lost while a transaction ran
// under it is reported. Whoever runs alone after a crew has handed on the lock that it had.
func (w *world) checkLoss(g *grant) {
	if !g.lost() || g.regained > 0 || w.history.reportedLost(g) {
		return
	}
	for _, o := range w.history.users(g) {
		for _, a := range o.attempts {
			worked := a.op == o && a.grants[g.key] == g && a.begun <= g.until && (o.ended == 0 || g.until < o.ended)
			if worked && !w.history.passedOn(a, g.key, g.until) && !w.history.unsureBefore(o, g) && !w.excused(o, g, nil) {
				w.problem("I5: the lock of %s (%s) was lost while it ran, and nobody reports it", o, o.work.name)
				return
			}
		}
	}
}

// unsureBefore reports whether o has found a lock in place, after a COMMIT of unknown
// outcome, before that was lost. It uses the lock no more then. The COMMIT may be one that o
// made for others, of a crew that left out its own change.
func (h *history) unsureBefore(o *op, g *grant) bool {
	looked := slices.ContainsFunc(o.looked[g.key], func(step int) bool { return g.from < step && step < g.until })
	return looked && slices.ContainsFunc(h.ops, func(user *op) bool {
		return errors.Is(user.err, guard.ErrUnknown) && slices.Contains(user.runners(), o)
	})
}

// checkOverlaps is I5 for those who met another: what an operation found committed after
// its first snapshot, on a row that its key protects, is reported.
func (w *world) checkOverlaps(k *commit) {
	for _, o := range w.history.ops {
		if o == k.op || o.work.bare || o.work.calls || o.ended == 0 || len(o.attempts) == 0 || !o.writes(k.row) || slices.Contains(o.attempts, k.attempt) {
			continue
		}
		first, key := w.history.firstOfLast(o), o.keyOf(k.row)
		met, refused := errors.AsType[*dbguard.ConflictError](o.err)
		if k.step > o.ended || !refused && !o.answer.Replayed || !o.met(k) {
			continue
		}
		if served := o.answer.Replayed || met.Subject == conflict.ClaimRow; served && !o.claims(k.row) { // it got no further
			continue
		}
		if key == "" || o.claims(k.row) && o.held() != k.op.held() { // the lock says nothing about it
			continue
		}
		if k.step <= first.snapshot {
			if g := first.grants[key]; g != nil && k.step > g.from && w.unheard(k) && !w.history.reported(g) {
				w.fired = append(w.fired, early)
			}
			continue
		}
		heard := w.history.reported(first.grants[key]) || k.attempt != nil && w.history.reported(k.attempt.grants[k.op.keyOf(k.row)])
		if !heard && !w.excused(o, first.grants[key], k) {
			w.problem("I5: %s (%s) met what %s (%s) had committed to %s while it had the lock, and nobody reports it",
				o, o.work.name, k.op, k.op.work.name, k.row)
		}
	}
}

// met reports whether the commit came while o was at work, and before its last write ended.
func (o *op) met(k *commit) bool {
	for _, a := range slices.Backward(o.attempts) {
		if a.wrote > 0 {
			return a.ended == 0 || k.step <= a.ended
		}
	}
	return false
}

// checkOutages is I9: an outage begins once and ends once, unless its process is killed
// before, and no more of them begin than there were faults. The end is reported when the
// last operation without the lock has ended, perhaps in the next outage.
func (w *world) checkOutages() {
	for _, p := range w.processes {
		begun, ended := w.history.outages(p.name)
		if ended > begun || ended < begun && p.killed == 0 && !w.server.down || begun > w.history.shaken {
			w.problem("I9: %s has reported that %d outages began and %d ended, after %d faults", p.name, begun, ended, w.history.shaken)
		}
	}
}

// checkRelay is I10: an event that was stored, and not lost by the database, is published.
func (w *world) checkRelay() {
	for id := range w.history.stored {
		if w.history.monitor[id] == 0 {
			w.problem("I10: an event was stored, and is not published")
		}
	}
}
