package sim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/pending"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/once"
)

// A lasting is a fault that stays when all others have ended.
type lasting int

const (
	nothing   lasting = iota
	noBank            // the bank can't be reached
	noLocks           // the server of the locks is gone
	noProcess         // a process has died, and is not started again
)

func (l lasting) String() string {
	return [...]string{"", "the bank", "the locks", "the first process"}[l]
}

// calmDown ends the faults, but for the one that lasts. What was delayed arrives.
func (w *world) calmDown() {
	w.settleDown()
	for len(w.ghosts) > 0 {
		w.exorcise()
		w.tick()
	}
	if w.lagging {
		w.db.Apply(-1)
		w.lagging = false
	}
	switch w.plan.lasting {
	case noBank:
		w.bankDown = true
	case noLocks:
		w.server.down = true
		w.history.shaken++
		w.history.cutOff++
	case noProcess:
		if i := slices.IndexFunc(w.processes, func(p *process) bool { return p.number == 0 && p.kind == callers && p.killed == 0 }); i >= 0 {
			w.end(w.processes[i])
		}
	}
	w.tell("no more faults, without %s", w.plan.lasting)
}

const (
	// soon is how much longer than its Wait an operation may take when all faults have ended: a session
	// waits for a row for 50 s at most.
	soon = time.Minute
	// idle is for how long a lock may be free and waited for.
	idle = 6 * time.Second
	// mostRepeats is how often a request is repeated, 4 s after one another, until it is settled or
	// undecided: longer than Until and a lease.
	mostRepeats = 30
)

// checkRest is L1 and L2, when all faults have ended: an operation ends soon, and nobody waits for a lock
// that nobody has.
func (w *world) checkRest(o *op) {
	if !w.calm || o.work.bare {
		return
	}
	from := o.returned.Add(-o.took)
	if from.Before(w.calmed) {
		from = w.calmed
	}
	took := o.returned.Sub(from)
	if took > o.wait+soon {
		w.problem("L1: %s (%s) has taken %v since all faults have ended", o, o.work.name, took)
	}
	held, ok := errors.AsType[*lockengine.HeldError](o.err)
	if !ok || !errors.Is(o.err, guard.ErrBusy) || held.Holder.Owner == "" && o.work.calls || took < o.wait || o.wait < idle || w.plan.lasting == noLocks {
		return
	}
	for _, g := range w.history.grants {
		if g.key == held.Key && g.from > 0 && (g.until == 0 || o.returned.Sub(g.freed) < idle) {
			return
		}
	}
	w.problem("L2: %s (%s) has waited for the lock on %q, which nobody had", o, o.work.name, held.Key)
}

// bound is when all operations have ended that were to be made when the faults ended.
func (w *world) bound() time.Duration {
	longest := time.Duration(0)
	for _, callers := range w.plan.work {
		for _, specs := range callers {
			total := time.Duration(0)
			for _, s := range specs {
				total += s.rest + s.wait + soon
			}
			longest = max(longest, total)
		}
	}
	return longest
}

// repeats is C10: what is pending is repeated until it is settled, or listed as undecided, and its caller is
// told so. It reports whether there is such a request.
func (w *world) repeats() bool {
	if !w.plan.calls() || w.plan.lasting == noLocks {
		return false
	}
	i := slices.IndexFunc(w.processes, func(p *process) bool { return p.kind == callers && p.killed == 0 })
	for _, row := range w.db.Rows("belay_pending") {
		id := ids[row["request"].(string)]
		if w.undecided[id] && row["answered"] == int64(0) { // a late answer is settled by a repeat
			continue
		}
		if w.repeated[id]++; w.repeated[id] > mostRepeats {
			w.problem("C10: request %s is neither settled nor undecided", id)
			return false
		}
		w.repeat(w.processes[i], id, row["print"].(string))
		return true
	}
	return false
}

// repeat has a process repeat a request.
func (w *world) repeat(p *process, id, printed string) {
	q := request{id: id}
	for _, content := range []string{"a", "b"} {
		if p := once.PrintOf(1, []byte(content)); string(p.Bytes()) == printed {
			q.content = content
		}
	}
	name := fmt.Sprintf("%sz%s%d", p.name, id, w.repeated[id])
	o := &op{spec: spec{work: workloadOf("call: pay"), key: "k", rest: 4 * time.Second, request: q}, process: p, name: name, own: name}
	w.history.ops = append(w.history.ops, o)
	w.mu.Lock()
	p.callers++
	w.mu.Unlock()
	go p.caller([]*op{o})
}

// checkListed is C10, too: in the end all that is pending is listed, and is undecided.
func (w *world) checkListed() {
	if !w.plan.calls() {
		return
	}
	pool := sql.OpenDB(w.db.Connector("people", open{}))
	defer pool.Close()
	d, _ := sqldb.Of(w.plan.dialect)
	rows, err := pending.List(context.Background(), sqldb.New(pool, d), 10)
	must(err)
	if n := len(w.db.Rows("belay_pending")); n != len(rows) {
		w.problem("C10: %d requests are pending, and %d are listed", n, len(rows))
	}
	for _, r := range rows {
		if !r.Undecided && w.plan.lasting != noLocks {
			w.problem("C10: request %s is listed, and not undecided", ids[string(r.Request)])
		}
	}
}
