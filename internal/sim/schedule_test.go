package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/internal/random"
	"github.com/belaygo/belay/internal/sim/simdb"
)

// A world is one schedule: processes, the servers that they share, and one scheduler.
type world struct {
	plan     plan
	rng      *rand.Rand // of the scheduler
	chooser  chooser
	gate     *gate
	server   *server
	db       *simdb.Database // nil: no operation needs one
	inbox    *simdb.Database // of those who handle messages
	history  *history
	bank     *bank
	exchange *exchange
	bankDown bool // it is, for good

	mu        sync.Mutex
	returned  []*op // since the last step
	processes []*process

	step     int
	calm     bool      // no more faults
	calmed   time.Time // since then
	dirty    *call     // of the database, which may have committed
	purge    *call     // the last one that did, of those who delete old requests
	serves   bool      // operations serve requests
	sends    bool      // operations send messages
	aged     bool      // requests are old
	lagging  bool
	stored   bool    // an event may have been
	ghosts   []*call // given up by their callers, executed later or never
	choices  []choice
	story    []string
	problems []string
	fired    []string // blind spots

	begun  []*begun       // calls of the bank; guarded by mu
	billed map[string]int // settlements, by request

	repeated  map[string]int  // requests that were pending in the end
	undecided map[string]bool // those whose caller was told that they are undecided
}

// maxSteps bounds a schedule: what is still running by then runs on without faults.
const maxSteps = 1500

// latency is how long a step takes.
const latency = 97 * time.Microsecond

// A result is what is left of a schedule.
type result struct {
	plan     plan
	choices  []choice
	story    []string
	problems []string
	spots    []string // blind spots that fired
	faults   map[string]int
	arrived  int // messages
	again    int // times that one of them arrived once more
}

// simulate runs one schedule.
func simulate(t *testing.T, p plan, c chooser) (r result) {
	p = p.relayed()
	synctest.Test(t, func(t *testing.T) {
		w := &world{plan: p, rng: rand.New(rand.NewPCG(p.seed, 1)), chooser: c, gate: newGate(), serves: p.serves(), sends: p.sendsAny(), repeated: make(map[string]int), undecided: make(map[string]bool)}
		w.server, w.history, w.bank, w.exchange = newServer(w), newHistory(w), newBank(w), newExchange(w)
		random.Use(numbers(p.seed))
		defer random.Use(nil)
		if p.database() {
			w.db = newDatabase(p)
			w.history.last = w.rows()
		}
		if p.consumers > 0 {
			w.inbox = newInbox(p)
		}
		for n := range p.work {
			w.start(n, 0)
		}
		for n := range p.relays {
			w.startRelay(n, 0)
		}
		for n := range p.consumers {
			w.startConsumer(n, 0)
		}
		w.run()
		if n, ok := c.(*narrowCalls); ok {
			n.look()
		}
		w.check()
		r = result{p, w.choices, w.story, w.problems, w.fired, w.history.faults, len(w.exchange.arrived), 0}
		for _, n := range w.exchange.arrived {
			r.again += n - 1
		}
		for _, p := range w.processes {
			w.gate.kill(p)
		}
		for _, p := range w.processes {
			p.stop()
		}
		<-time.After(time.Hour) // what still waits ends
		for _, p := range w.processes {
			p.forget()
		}
	})
	return r
}

// numbers returns the source of the product's random numbers. Delays depend on the moment
// alone, and not on which goroutine draws first.
func numbers(seed uint64) random.Source {
	var mu sync.Mutex // two pauses may end at one moment
	stamps := rand.New(rand.NewPCG(seed, 2))
	return func(n int64) int64 {
		if n > int64(365*24*time.Hour) {
			mu.Lock()
			defer mu.Unlock()
			return stamps.Int64N(n)
		}
		x := (uint64(time.Now().UnixNano()) ^ seed) * 0x9e3779b97f4a7c15
		return int64((x >> 1) % uint64(n))
	}
}

// run is the scheduler. Whatever happens between two of its steps happens in one
// goroutine, or in several that do not see each other.
func (w *world) run() {
	for {
		synctest.Wait()
		w.tend()
		w.settle()
		calls := w.awake(sendable(w.gate.calls()))
		if w.plan.calm > 0 && !w.calm && w.step >= w.plan.calm {
			w.calmDown()
			continue
		}
		if w.done() && w.relayed() {
			w.settleDown()
			for len(w.ghosts) > 0 { // a server does not keep a session for ever whose client has gone
				w.exorcise()
			}
			if w.repeats() {
				continue
			}
			if w.drained(calls) {
				return
			}
		} else if !w.done() && w.plan.calm > 0 && w.calm && time.Since(w.calmed) > w.bound() {
			w.problem("L1: operations have not ended %v after all faults", w.bound())
			return
		}
		w.mu.Lock()
		w.step++
		w.mu.Unlock()
		if w.step > maxSteps {
			w.settleDown()
		}
		if w.step > 4*maxSteps {
			w.problem("I0: the schedule does not end")
			return
		}
		if c := w.quiet(calls); c != nil {
			w.gate.decide(c, w.execute(c))
			continue
		}
		w.apply(w.chooser.next(w, calls), calls)
		w.tick()
	}
}

// tick lets a step take its time, or timers of different steps would end at once, in any order. Whoever a
// timer wakes has seen the step: a timer alone says nothing of memory.
func (w *world) tick() {
	w.mu.Lock()
	w.mu.Unlock() //nolint:staticcheck // that is all
	<-time.After(latency)
}

// settleDown ends all faults.
func (w *world) settleDown() {
	if !w.calm {
		w.calm, w.calmed, w.server.down, w.server.full = true, time.Now(), false, false
		w.gate.trace.shaken()
	}
}

// rest is how long a Locker has to release what it does not use, in the end.
const rest = ttl / 2

// drained reports whether nothing is left to do after the last operation.
func (w *world) drained(calls []*call) bool {
	if !w.delivered() {
		return false
	}
	outbox := w.plan.outbox && w.db != nil
	if outbox && len(w.db.Rows("belay_outbox")) > 0 || time.Since(w.calmed) < rest {
		return false
	}
	if w.plan.lasting == noLocks && w.server.down { // what would be released is retried for ever
		return true
	}
	return (outbox || w.plan.relays > 0 || len(calls) == 0) && !w.history.inOutage()
}

// done reports whether all callers have ended, but for those of processes that were killed.
func (w *world) done() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !slices.ContainsFunc(w.processes, func(p *process) bool { return p.killed == 0 && p.callers > 0 })
}

// settle takes in what the last step has led to.
func (w *world) settle() {
	w.mu.Lock()
	returned := w.returned
	w.returned = nil
	w.mu.Unlock()
	slices.SortFunc(returned, func(a, b *op) int { return strings.Compare(a.name, b.name) })
	for _, o := range returned {
		o.ended = w.step
		w.tell("%s returned: %v", o, o.err)
		w.gate.trace.returned(o)
		w.learn(o)
	}
	for _, c := range w.gate.gone() {
		if c.op != nil {
			c.op.missed(c.text)
		}
		if !c.mails {
			w.history.statement(c, cut)
		}
	}
	if c := w.dirty; c != nil {
		if c.op != nil {
			w.history.changed(c)
		}
		w.history.live(c)
		w.checkOpen()
		w.checkMessages()
		w.dirty = nil
	}
	if w.stored {
		w.history.keep()
		w.stored = false
	}
	w.server.expire()
	w.gate.trace.rests()
}

// quiet returns a call that is not worth a choice: a question about the server or a table.
func (w *world) quiet(calls []*call) *call {
	asks := questions
	if !w.aged { // nothing is to be purged
		asks = append(slices.Clip(asks), "SELECT request FROM")
	}
	for _, c := range calls {
		if c.db != nil && c.ctx.Err() == nil && slices.ContainsFunc(asks, func(part string) bool { return strings.Contains(c.sql, part) }) {
			return c
		}
	}
	return nil
}

var questions = []string{"SHOW ", "information_schema", "pg_trigger", "pg_attribute", "pg_backend_pid", "@@in_transaction"}

// execute has a call executed, by the scheduler or, once it has its fate, by the database.
func (w *world) execute(c *call) fate {
	if c.run != nil {
		c.run()
	}
	w.gate.trace.decided(c, run)
	return executed
}

func (w *world) problem(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

func (w *world) tell(format string, args ...any) {
	at := time.Since(epoch)
	w.story = append(w.story, fmt.Sprintf("%4d %9.3fs  %s", w.step, at.Seconds(), fmt.Sprintf(format, args...)))
}

// epoch is when the clock of each schedule begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// apply does what was chosen.
func (w *world) apply(c choice, calls []*call) {
	w.choices = append(w.choices, c)
	if c.do != run && c.do != wait {
		w.history.faults[c.do.String()]++
	}
	w.tell("%s", c)
	switch i := slices.IndexFunc(calls, func(x *call) bool { return x.label() == c.on }); {
	case c.do.ofCall() && i >= 0:
		w.decide(c.do, calls[i])
	case c.do == wait:
		w.pass(c.forTime)
	case c.do == lose:
		w.server.wipe(c.on)
	case c.do == failOver:
		w.server.failOver(c.n)
	case c.do == toggle:
		w.server.down = !w.server.down
		w.gate.trace.shaken()
		w.history.shaken++
		w.history.cutOff++
	case c.do == fill:
		w.server.full = !w.server.full
		w.gate.trace.shaken()
		w.history.shaken++
		w.history.cutOff++
	case c.do == killProcess:
		w.kill(c.on)
	case c.do == endSession && i >= 0:
		w.db.KillSession(calls[i].db.Session)
		w.history.broken(calls[i])
	case c.do == crash && c.on != "":
		if w.inbox != nil { // shrink may have taken the consumers away
			w.inbox.Crash()
			w.inbox.Restart()
		}
	case c.do == crash:
		w.seePurge()
		w.gate.trace.crashed()
		w.db.Crash()
		w.db.Restart()
		w.history.broken(nil)
		w.history.forgotten()
	case c.do == replace:
		w.db.Failover(int64(c.n))
		w.history.broken(nil)
		w.history.forgotten()
	case c.do == lag && w.lagging:
		w.db.Apply(-1)
		w.lagging = false
	case c.do == lag:
		w.db.Lag()
		w.lagging = true
	case c.do == haunt:
		w.haunt(c.on)
	case c.do == giveUp:
		w.giveUp(c.on)
	case c.do == freeze:
		w.exchange.frozen[c.on] = time.Now().Add(c.forTime)
	case c.do == age:
		w.aged = true
		w.db.Age(c.forTime)
		w.pass(purgeTime)
	}
}

// decide gives a call its fate.
func (w *world) decide(do action, c *call) {
	if c.op != nil && do != run {
		c.op.missed(c.text)
	}
	if c.run != nil && do != run && !c.pays && !c.mails {
		w.history.shaken++
		if expired(c) {
			w.history.silent = max(w.history.silent, time.Since(c.at))
		} else {
			w.history.cutOff++
		}
	}
	if c.db != nil && !c.mails {
		w.history.statement(c, do)
		commits := strings.HasPrefix(c.text, "COMMIT")
		purges := c.purges() && (commits || strings.HasPrefix(c.sql, "DELETE")) // which commits itself on PostgreSQL
		if (c.op != nil && commits || purges) && do != cut {
			w.dirty = c
		}
		if purges {
			w.purge = c
		}
		if c.text == flush { // it may show what a purge has committed
			w.dirty = w.purge
		}
		if strings.HasPrefix(c.sql, "INSERT INTO belay_outbox") {
			w.stored = true
		}
	}
	if do == run && c.text == enters {
		w.seePurge()
		w.entered(c.op)
	}
	w.follow(c)
	switch do {
	case run:
		w.gate.decide(c, w.execute(c))
	case cut:
		w.gate.trace.decided(c, do)
		w.gate.decide(c, cutBefore)
	case cutAnswer:
		if c.run != nil {
			c.run()
		}
		w.gate.trace.decided(c, do)
		w.gate.decide(c, cutAfter)
	case refuse:
		w.gate.trace.decided(c, do)
		w.gate.decide(c, refused)
	case mistake:
		if c.run != nil {
			c.run()
		}
		w.gate.decide(c, mistaken)
	case delay:
		w.ghosts = append(w.ghosts, c)
		w.gate.trace.decided(c, do)
		w.gate.decide(c, late)
	}
}

// haunt executes a request that its caller has given up.
func (w *world) haunt(label string) {
	i := slices.IndexFunc(w.ghosts, func(c *call) bool { return c.label() == label })
	if i < 0 {
		return
	}
	c := w.ghosts[i]
	w.ghosts = slices.Delete(w.ghosts, i, i+1)
	if c.run != nil {
		c.run()
		w.gate.trace.late(c)
		return
	}
	db := w.database(c.process)
	late := db.Late()
	if n := slices.IndexFunc(late, func(l simdb.Call) bool { return l.Conn == c.db.Conn && l.Text == c.sql }); n >= 0 {
		w.gate.trace.late(c)
		db.ExecuteLate(n)
		w.stored = true
		if c.op != nil || c.purges() {
			w.dirty = c
		}
	}
}

// seePurge has the oracle see what the last purge has deleted: its DELETE may have waited for a row.
func (w *world) seePurge() {
	if w.purge != nil {
		w.history.live(w.purge)
	}
}

// exorcise executes the oldest request that its caller has given up, and has the oracle see what it
// changes: it would take that for a change of the next one.
func (w *world) exorcise() {
	w.haunt(w.ghosts[0].label())
	synctest.Wait()
	w.settle()
}

// pass is wait with what it costs: who stands still before a request takes the locks for
// silent.
func (w *world) pass(d time.Duration) {
	w.wait(d)
	if slices.ContainsFunc(w.gate.calls(), func(x *call) bool { return x.text == queue }) {
		w.history.shaken++
		w.history.cutOff++
	}
	w.checkHeld()
}

// wait lets time pass: d, or, if that is 0, until something happens. Meanwhile the locks
// are renewed.
func (w *world) wait(d time.Duration) {
	until := d == 0
	if until {
		d = w.exchange.thaws()
	}
	if w.calm {
		d = rest
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.gate.arrived: // of an earlier call
	default:
	}
	for {
		select {
		case <-timer.C:
			return
		case <-w.gate.arrived:
		}
		synctest.Wait()
		w.tend()
		w.mu.Lock()
		ended := len(w.returned) > 0
		w.mu.Unlock()
		w.settle()
		if until && w.plan.relays > 0 && !ended && len(w.awake(w.gate.calls())) == 0 {
			continue // it was routine
		}
		if until {
			return
		}
		for _, c := range w.gate.calls() {
			if strings.HasPrefix(c.text, "RENEW") && c.ctx.Err() == nil {
				w.gate.decide(c, w.execute(c))
			}
		}
	}
}

// kill ends a process, and starts it again with what it has not done.
func (w *world) kill(name string) {
	i := slices.IndexFunc(w.processes, func(p *process) bool { return p.name == name && !p.dead })
	if i < 0 {
		return
	}
	p := w.processes[i]
	w.end(p)
	life := 0
	for _, q := range w.processes {
		if q.number == p.number && q.kind == p.kind {
			life++
		}
	}
	switch p.kind {
	case relays:
		w.startRelay(p.number, life)
	case consumers:
		w.startConsumer(p.number, life)
	default:
		w.start(p.number, life)
	}
}

// database returns that of a process.
func (w *world) database(p *process) *simdb.Database {
	if p.kind == consumers {
		return w.inbox
	}
	return w.db
}

// end ends a process.
func (w *world) end(p *process) {
	p.killed = w.step
	w.gate.trace.killed(p)
	for _, c := range w.gate.calls() {
		if c.process == p && (c.pays || c.sends) {
			w.ghosts = append(w.ghosts, c)
		}
		if c.process == p && c.db != nil && !c.mails {
			w.history.statement(c, cut)
		}
	}
	w.gate.kill(p)
	w.exchange.requeue(p)
	if db := w.database(p); db != nil {
		db.KillProcess(p.name)
	}
}
