package sim

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/model"
	"github.com/belaygo/belay/notify"
)

// A tracer follows a schedule through the model, step by step. It sees what the gates see:
// what was sent, executed and answered, what failed, and what callers were told. A nil tracer
// sees nothing.
type tracer struct {
	w     *world
	trace *model.Trace
	rows  []string // their names, of each key
	keys  []string // of the locks

	mu        sync.Mutex
	err       error                // the first step that the model cannot take
	deadlines map[string]time.Time // until when a Locker relies on its grant, by owner
	conns     map[string]*op       // who used a connection last
	readers   map[string]bool      // connections that have read a claim outside of an attempt
	broken    map[string]bool      // connections that a crash of the database has ended
	commits   map[string]bool      // connections that wait for the answer to a COMMIT
	judging   map[int]bool         // callers who collect evidence, until they return
	victims   map[int]bool         // callers of a deadlock that was seen, and of which they are not told yet
	unsure    map[int]bool         // callers whose COMMIT was not answered, until they return
	rested    bool                 // nothing was seen since the servers were looked at
	others    map[string]int       // statements that stand for nothing in the model
	omitted   map[string]int       // choices of the dice that the model lacks
	node      model.Sight          // what the node of the lock did last
	vain      map[int]bool         // callers who have asked it in vain since anything else was seen
	denied    map[int]bool         // callers who have asked it in vain last, until an outage ends
	ends      map[int]int          // how many ends of outages were reported, by the first caller of the process
}

func newTracer(w *world, p traced) *tracer {
	return &tracer{
		w: w, trace: model.NewTrace(p.cfg), rows: p.rows, keys: p.keys, readers: make(map[string]bool), deadlines: make(map[string]time.Time),
		conns: make(map[string]*op), broken: make(map[string]bool), commits: make(map[string]bool), judging: make(map[int]bool), victims: make(map[int]bool), unsure: make(map[int]bool), node: model.NodeBack, vain: make(map[int]bool), denied: make(map[int]bool), ends: make(map[int]int), others: make(map[string]int), omitted: make(map[string]int),
	}
}

// localTTL is how long a Locker relies on a grant after it was asked for.
const localTTL = ttl - ttl/10

// callersOf are the callers as the model counts them: the second of the first process is its third.
var callersOf = []string{"p0a0", "p1a0", "p0b0"}

func (o *op) caller() int { return slices.Index(callersOf, o.name) }

// callerOf returns who asked for the lock that an owner has, or -1.
func (t *tracer) callerOf(owner string) int {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	for _, o := range t.w.history.ops {
		if slices.Contains(o.owners, owner) {
			return o.caller()
		}
	}
	return -1
}

func (t *tracer) see(what model.Sight, who int) { t.take(model.Seen{What: what, Who: who}) }

// take takes in a step, and the deadlines that have passed before it.
func (t *tracer) take(x model.Seen) {
	var past []string
	for owner, at := range t.deadlines {
		if !time.Now().Before(at) {
			past = append(past, owner)
		}
	}
	slices.SortFunc(past, func(a, b string) int { return t.deadlines[a].Compare(t.deadlines[b]) })
	for _, owner := range past {
		delete(t.deadlines, owner)
		t.add(model.Seen{What: model.Deadline, Who: t.callerOf(owner), Key: t.keyOf(owner)})
	}
	t.add(x)
}

func (t *tracer) add(x model.Seen) {
	if t.err != nil || x.Who < 0 {
		return
	}
	switch {
	case x.What == model.Unserved && t.vain[x.Who]: // which changes nothing
		return
	case x.What == model.Unserved:
		t.vain[x.Who] = true
	case x.What != model.Rests:
		clear(t.vain)
	}
	if x.What == model.CommitLost || x.What == model.CommitUnheard {
		t.unsure[x.Who] = true
	}
	if x.What == model.Inspected && t.unsure[x.Who] { // and the proof is not complete
		t.judging[x.Who] = true
	}
	t.rested = x.What == model.Rests
	t.err = t.trace.See(x)
}

// arrived takes in a call that was sent, and waits at its gate.
func (t *tracer) arrived(c *call) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.op == nil || t.broken[c.conn] || t.readers[c.conn] {
		return
	}
	t.overruns(c)
	switch verbOf(c) {
	case queue:
		if c.op.work.combines {
			t.see(model.Parts, c.op.caller())
		}
	case "RELEASE":
		t.seeOf(model.SendsRelease, c.op.caller(), t.place(c.asks[0].Key))
	case "INSERT", "UPDATE", claims:
		t.seeOf(model.SendsWrite, c.op.caller(), t.rowIn(c.sql, c.db.Args))
	case "COMMIT":
		t.commits[c.conn] = true
		t.see(model.SendsCommit, c.op.caller())
	}
}

// overruns takes in that callers are at their changes while their crew goes on, which shows in the next
// call of another of their process.
func (t *tracer) overruns(c *call) {
	if !c.op.work.slow || c.text == queue || c.text == think {
		return
	}
	for _, other := range t.w.gate.thinking(c.process) {
		if other != c.op {
			t.see(model.Overruns, other.caller())
		}
	}
}

// decided takes in what becomes of a call.
func (t *tracer) decided(c *call, do action) {
	if t == nil || t.w.gate.isDead(c.process) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.db != nil {
		t.statement(c, do)
		return
	}
	verb, _, _ := strings.Cut(c.text, " ")
	switch {
	case c.text == queue && do == run:
		t.see(model.Queues, c.op.caller())
	case c.text == enters && do == run:
		t.see(model.Enters, c.op.caller())
	case verb == "ACQUIRE":
		t.acquired(c, do)
	case verb == "RENEW":
		t.renewed(c, do)
	case verb == "RELEASE":
		t.released(c, do)
	case verb == "PROBE":
		t.probed(c, do)
	case verb == "INSPECT" && do == run && c.err == nil:
		key := strings.TrimPrefix(c.text, "INSPECT ")
		t.take(model.Seen{What: model.Inspected, Who: c.op.caller(), Key: t.place(key), Says: t.holder(c.op, key)})
	case verb == "INSPECT":
		t.see(model.InspectUnheard, c.op.caller())
	}
}

// late takes in a call that was executed after its caller had given it up.
func (t *tracer) late(c *call) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case strings.HasPrefix(c.text, "ACQUIRE") && c.err == nil:
		t.see(model.AcquireLate, c.op.caller())
	case c.text == "COMMIT" && !t.broken[c.conn]:
		t.see(model.CommitsLate, c.op.caller())
	}
}

func (t *tracer) freed(owner, why string) {
	if t == nil || why == "released" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	what := model.Expired
	if why == "lost" {
		what = model.LockLost
	}
	t.seeOf(what, t.callerOf(owner), t.keyOf(owner))
}

// killed takes in that a process is killed, with a COMMIT that was not sent.
func (t *tracer) killed(p *process) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	first := -1
	for _, c := range t.w.gate.calls() {
		if c.process == p && c.text == "COMMIT" && c.op != nil && !t.broken[c.conn] {
			t.see(model.CommitLost, c.op.caller())
		}
		if o := t.conns[c.conn]; c.process == p && c.text == flush && o != nil { // the server goes on
			t.see(model.Flushed, o.caller())
		}
	}
	for _, o := range t.w.history.ops {
		if i := o.caller(); o.process == p && (first < 0 || i < first) {
			first = i
		}
		if o.process == p {
			for _, owner := range o.owners {
				delete(t.deadlines, owner)
			}
		}
	}
	clear(t.judging)
	clear(t.unsure)
	t.see(model.Killed, first)
}

func (t *tracer) crashed() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.see(model.Crashed, 0)
	for conn := range t.commits {
		t.unsure[t.conns[conn].caller()] = true
	}
	for conn := range t.conns {
		t.broken[conn] = true
	}
}

// changes takes in that a caller makes its change, perhaps in the transaction of another one.
func (t *tracer) changes(o *op) {
	if t == nil || t.w.gate.isDead(o.process) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.see(model.Changes, o.caller())
}

func (t *tracer) published(o *op, ev notify.Event) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case ev.Verdict == notify.VerdictDegraded:
		t.outage(o, ev)
		return
	case o == nil:
		return
	case ev.Verdict == notify.VerdictUnavailable:
		t.others["event: unavailable"]++
		return
	}
	t.take(model.Seen{What: model.Publishes, Who: o.caller(), Key: t.place(ev.Key), Count: ev.Count, Says: strings.ReplaceAll(string(ev.Verdict), "_", " ")})
}

func (t *tracer) returned(o *op) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.judging, o.caller())
	delete(t.unsure, o.caller())
	x := model.Seen{What: model.Returns, Who: o.caller(), Says: answerOf(o.err)}
	if o.err == nil && o.answer.Replayed {
		x.Says = "the stored answer"
		x.Of = slices.Index(callersOf, o.answer.Value.By)
	}
	t.take(x)
}

// rests compares what the servers have with what the model has.
func (t *tracer) rests() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rested {
		return
	}
	for i, key := range t.keys {
		x := model.Seen{What: model.Rests, Key: i, Holder: -1, Version: int(t.w.history.last[t.rows[i]].version)}
		if owner := t.w.server.state.held[key].owner; owner != "" {
			x.Holder = t.callerOf(owner)
		}
		if t.w.serves {
			x.Version, x.Effects = t.w.served()
			x.Marked = time.Now().Before(t.w.server.state.marks[key])
		}
		t.take(x)
	}
}

// served returns how many claims there are, and how many effects of operations that serve a request.
func (w *world) served() (claims, effects int) {
	for _, l := range w.history.lives {
		if l.ended == 0 {
			claims++
		}
	}
	return claims, len(w.db.Rows("orders"))
}

// answerOf names what a Do returned as the model does.
func answerOf(err error) string {
	_, conflict := errors.AsType[*dbguard.ConflictError](err)
	switch {
	case err == nil:
		return "nil"
	case errors.Is(err, guard.ErrIntercepted):
		return "ErrIntercepted"
	case errors.Is(err, guard.ErrUnknown):
		return "ErrUnknown"
	case errors.Is(err, guard.ErrDuplicate):
		return "ErrDuplicate"
	case errors.Is(err, guard.ErrStale):
		return "ErrStale"
	case errors.Is(err, guard.ErrUnavailable):
		return "ErrUnavailable"
	case errors.Is(err, dbtx.ErrClaimed):
		return "ErrBusy: another transaction has the request"
	case errors.Is(err, guard.ErrBusy) && conflict:
		return "ErrBusy: other callers were faster"
	case errors.Is(err, guard.ErrBusy):
		return "ErrBusy"
	case errors.Is(err, guard.ErrLost):
		return "ErrLost"
	case conflict:
		return "a conflict"
	}
	return "an error, nothing was committed"
}
