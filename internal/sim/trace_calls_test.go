package sim

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/belaygo/belay/guard"
	model "github.com/belaygo/belay/internal/model/call"
	"github.com/belaygo/belay/internal/sim/simdb"
	"github.com/belaygo/belay/once"
)

// tracedCalls are the operations with a call that the model has.
var tracedCalls = []string{"call: pay", "call: pay", "call: pay or failure", "call: pay or panic"}

// newTracedCalls draws a plan that the model of a call has: two processes make one request several times.
func newTracedCalls(seed uint64) (plan, *model.Config) {
	r := rand.New(rand.NewPCG(seed, 6))
	p := plan{seed: seed, faults: 1 + r.IntN(6), server: simdb.MariaDB, dialect: "mysql"}
	if r.IntN(2) == 0 {
		p.server, p.dialect = simdb.PostgreSQL, "postgres"
	}
	p.until, p.declined = untils[r.IntN(len(untils))], []string{"", "", "r"}[r.IntN(3)]
	cfg := &model.Config{Other: r.IntN(4) == 0}
	for n := range 2 {
		q := request{"r", "a"}
		if cfg.Other && n == 1 {
			q.content = "b"
		}
		var specs []spec
		for range 2 + r.IntN(2) {
			work := workloadOf(tracedCalls[r.IntN(len(tracedCalls))])
			specs = append(specs, spec{work: work, key: "k", wait: waits[r.IntN(len(waits))], rest: rests[r.IntN(len(rests))], request: q})
		}
		p.work = append(p.work, [][]spec{specs})
	}
	return p, cfg
}

// A narrowCalls makes those choices of a dice that the model of a call has, and follows what they lead to.
type narrowCalls struct {
	*dice
	cfg     *model.Config
	tracer  *callTracer
	last    choice
	killed  bool
	omitted map[string]int
}

func (n *narrowCalls) next(w *world, calls []*call) choice {
	if n.tracer == nil {
		n.tracer = &callTracer{w: w, trace: model.NewTrace(n.cfg), began: make(map[*op]bool), ended: make(map[*op]bool)}
	}
	n.look()
	c := n.choose(w, calls)
	n.last = c
	if slices.ContainsFunc(calls, func(x *call) bool { return x.label() == c.on && expired(x) }) { // which is no fault
		n.last = choice{}
	}
	return c
}

// look takes in what the last choice has led to. A schedule without a choice has nothing to look at.
func (n *narrowCalls) look() {
	if n.tracer != nil {
		n.tracer.look(n.last)
	}
}

func (n *narrowCalls) choose(w *world, calls []*call) choice {
	return n.adapt(w, n.among(w, calls, n.has, n.omitted))
}

// adapt keeps a process that is killed from coming back.
func (n *narrowCalls) adapt(w *world, c choice) choice {
	if c.do == killProcess {
		n.killed = true
		w.plan.work = slices.Clone(w.plan.work)
		w.plan.work[c.on[1]-'0'] = nil
	}
	return c
}

// has reports whether the model has a choice.
func (n *narrowCalls) has(c choice, calls []*call) bool {
	switch c.do {
	case run, wait, lose, haunt, toggle, fill:
		return true
	case killProcess:
		return !n.killed
	case cut, cutAnswer, refuse, mistake, delay:
		x := calls[slices.IndexFunc(calls, func(x *call) bool { return x.label() == c.on })]
		return x.pays || c.do != delay && (expired(x) || verbOf(x) != "ACQUIRE")
	}
	return false
}

// A callTracer follows a schedule through the model of a call. It looks between the scheduler's steps.
type callTracer struct {
	w     *world
	trace *model.Trace
	err   error // the first step that the model cannot take
	over  bool  // a third process serves the request, or one with another content

	began, ended map[*op]bool
	begun        []*begun
	killed       [2]bool
	owner        string // of the lock
	past         int64  // the attempt whose lease is over
	attempts     []int64
	until        int64
}

// look takes in what has happened since it was called last, by a choice.
func (t *callTracer) look(by choice) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	steps := slices.Concat(t.hit(by), t.failed(by), t.steps())
	if t.err == nil && !t.over {
		t.err = t.trace.See(t.shown(), steps...)
	}
}

// hit are the processes that a choice may make fail. Calls of the bank that fail are seen by themselves.
func (t *callTracer) hit(by choice) (steps []model.Seen) {
	var hits [2]bool
	switch {
	case by.do == run, by.do == haunt, by.do == wait && by.forTime == 0, by.do.ofCall() && strings.Contains(by.on, ": "+pays):
	case by.do.ofCall(), by.do == killProcess:
		hits[by.on[1]-'0'] = true
	case by.do == lose:
		if o := t.ownerOf(t.owner); o != nil {
			hits[o.process.number] = true
		}
	default:
		hits = [2]bool{true, true}
	}
	for n, hit := range hits {
		if hit {
			steps = append(steps, model.Seen{What: model.Hit, Who: n})
		}
	}
	return steps
}

// steps are those that no table shows.
func (t *callTracer) steps() (steps []model.Seen) {
	see := func(what model.Sight, o *op, says model.Answer) {
		steps = append(steps, model.Seen{What: what, Who: o.process.number, Says: says})
	}
	owner := t.w.server.state.held[request{id: "r"}.lock()].owner
	was, is := t.ownerOf(t.owner), t.ownerOf(owner)
	for _, o := range t.w.history.ops {
		if n := o.process.number; o.process.killed > 0 && !t.killed[n] {
			t.killed[n] = true
			see(model.Killed, o, "")
		}
	}
	if owner != t.owner && was != nil {
		see(model.LockGone, was, "")
	}
	for _, o := range t.w.history.ops {
		if o.ended > 0 && !t.ended[o] {
			t.ended[o] = true
			see(model.Returns, o, answerOfCall(o))
		}
	}
	for _, o := range t.w.history.ops {
		if o.began > 0 && !t.began[o] {
			t.began[o] = true
			t.over = t.over || t.killed[o.process.number] && o.process.killed == 0 || o.content != t.contentOf(o.process.number)
			see(model.Begins, o, "")
			if o.work.fails && o.first {
				see(model.Hit, o, "")
			}
		}
	}
	if owner != t.owner && is != nil {
		see(model.Granted, is, "")
	}
	t.owner = owner
	if t.leaseOver() {
		steps = append(steps, model.Seen{What: model.LeaseOver})
	}
	return steps
}

// leaseOver reports once of an attempt whether the time of its lease has passed: it was not given back.
func (t *callTracer) leaseOver() bool {
	row := t.w.pending("r")
	if row == nil || row["attempt"] == t.past || row["lease_ms"] == int64(0) || row["lease_ms"].(int64) > t.now() {
		return false
	}
	t.past = row["attempt"].(int64)
	return true
}

// failed are the calls of the bank that have ended without a result, as far as there is a reason.
func (t *callTracer) failed(by choice) (steps []model.Seen) {
	for _, b := range t.begun {
		o := b.op
		late := time.Since(b.at) >= callTimeout
		switch {
		case slices.Contains(t.w.begun, b) || o.got || o.process.killed > 0:
		case late || o.work.panics && o.first && by.do == run:
			steps = append(steps, model.Seen{What: model.CallOver, Who: o.process.number})
		case by.do.ofCall() && by.do != run && strings.HasPrefix(by.on, o.name+": "+pays):
			steps = append(steps, model.Seen{What: model.CallFails, Who: o.process.number})
		}
	}
	t.begun = slices.Clone(t.w.begun)
	return steps
}

// contentOf returns what the first operation of a process asks for.
func (t *callTracer) contentOf(number int) string {
	i := slices.IndexFunc(t.w.history.ops, func(o *op) bool { return o.process.number == number })
	return t.w.history.ops[i].content
}

func (t *callTracer) ownerOf(owner string) *op {
	for _, o := range t.w.history.ops {
		if slices.Contains(o.owners, owner) {
			return o
		}
	}
	return nil
}

// now is the time by the database's clock, in milliseconds. PostgreSQL rounds it.
func (t *callTracer) now() int64 {
	if t.w.plan.dialect == "postgres" {
		return time.Now().Add(time.Millisecond / 2).UnixMilli()
	}
	return time.Now().UnixMilli()
}

// shown is what the servers show.
func (t *callTracer) shown() (x model.Shown) {
	now := t.now()
	if row := t.w.pending("r"); row != nil {
		attempt := row["attempt"].(int64)
		if !slices.Contains(t.attempts, attempt) {
			t.attempts = append(t.attempts, attempt)
		}
		t.until = row["until_ms"].(int64)
		x.Pending, x.Attempt, x.Lease = true, uint8(1+slices.Index(t.attempts, attempt)), row["lease_ms"].(int64) > now
		x.Answered, x.Print = uint8(row["answered"].(int64)), 1
		if b := once.PrintOf(1, []byte("b")); row["print"] == string(b.Bytes()) {
			x.Print = 2
		}
	}
	x.Past = t.until > 0 && now >= t.until
	x.Claim = len(t.w.db.Rows("belay_once")) > 0
	x.Reserved = uint8(len(t.w.db.Rows("holds")))
	for _, r := range t.w.db.Rows("bills") {
		x.Settled |= 1 << answerOfBank(r["declined"] != false)
	}
	if m, ok := t.w.bank.known["r"]; ok && (len(t.w.begun) > 0 || !time.Now().After(m.until)) {
		x.Remembers = answerOfBank(m.declined)
	}
	for _, b := range t.w.begun {
		if b.op.process.killed == 0 {
			x.Calls[b.op.process.number] = true
		}
	}
	return x
}

// answerOfBank numbers an answer as the model does.
func answerOfBank(declined bool) uint8 {
	if declined {
		return 2
	}
	return 1
}

// answerOfCall names what a caller was told as the model does.
func answerOfCall(o *op) model.Answer {
	pending, open := errors.AsType[*guard.PendingError](o.err)
	switch {
	case o.err == nil && o.answer.Replayed:
		return model.Replayed
	case o.err == nil:
		return model.Done
	case open && pending.Undecided:
		return model.Undecided
	case open:
		return model.Pending
	case errors.Is(o.err, guard.ErrUnknown):
		return model.Unknown
	case errors.Is(o.err, guard.ErrIntercepted):
		return model.LockFailed
	case errors.Is(o.err, guard.ErrMismatch):
		return model.Mismatch
	case errors.Is(o.err, guard.ErrBusy):
		return model.Busy
	case errors.Is(o.err, errPanic):
		return model.Panicked
	}
	return model.Failed
}
