package sim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/internal/sim/simdb"
	"github.com/belaygo/belay/relay"
)

// mailRests are how long callers wait before an operation, so that relays have read, sent or parked what
// others have committed.
var mailRests = []time.Duration{0, 0, 60 * time.Millisecond, 1100 * time.Millisecond, 5 * time.Second}

// mails draws who takes messages out, and what becomes of them. What else a plan has follows from the seed
// without it.
func (p *plan) mails() {
	r := rand.New(rand.NewPCG(p.seed, 6))
	if !p.sendsAny() || r.IntN(5) == 0 {
		return
	}
	p.relays = 1 + r.IntN(3)/2 + r.IntN(2)
	p.consumers = r.IntN(3)
	for _, callers := range p.work {
		for _, specs := range callers {
			for i := range specs {
				specs[i].rest += mailRests[r.IntN(len(mailRests))]
				specs[i].keyed, specs[i].bad = specs[i].sends && r.IntN(4) > 0, specs[i].sends && r.IntN(16) == 0
			}
		}
	}
}

// relayed returns a plan with those relays that it can have. A request that is served again behind a purge
// sends another message under one id, and a relay's levels of isolation are other sessions' behind a pooler.
func (p plan) relayed() plan {
	if !p.sendsAny() || p.outbox || p.purges || p.knobs.Pooler > 0 {
		p.relays, p.consumers = 0, 0
	}
	return p
}

// An exchange is the broker of messages, and what the scheduler knows of them. Only the scheduler calls it.
type exchange struct {
	w       *world
	stored  []letter       // that were committed, in the order in which that was seen
	arrived map[string]int // how often, by the name of the operation
	frozen  map[string]time.Time
	idle    int      // steps since the callers have ended
	first   []letter // as they arrived first
	queue   []delivery
	taken   map[*process]delivery
}

// A letter is a row of belay_message.
type letter struct {
	name, key string
	id        int64
}

func newExchange(w *world) *exchange {
	return &exchange{w: w, arrived: make(map[string]int), frozen: make(map[string]time.Time), taken: make(map[*process]delivery)}
}

// rows returns the messages that wait, and whether their keys wait for a later moment, or for people.
func (x *exchange) rows() (all []letter, later map[string]bool) {
	later = make(map[string]bool)
	now := time.Now().UnixMilli()
	parked := make(map[any]bool)
	for _, r := range x.w.db.Rows("belay_parked") {
		parked[r["key_sum"]] = r["dead"].(int64) > 0 || r["retry_at"].(int64) > now
	}
	for _, r := range x.w.db.Rows("belay_message") {
		_, name, _ := strings.Cut(r["body"].(string), ":")
		all = append(all, letter{name, r["message_key"].(string), r["id"].(int64)})
		later[name] = parked[r["key_sum"]]
	}
	return all, later
}

// waits reports whether a message could be sent now.
func (x *exchange) waits() bool {
	all, later := x.rows()
	return slices.ContainsFunc(all, func(l letter) bool { return !later[l.name] })
}

// see takes in which messages are committed.
func (x *exchange) see(rows []letter) {
	x.stored = slices.DeleteFunc(x.stored, func(l letter) bool { // the database has lost it
		return x.arrived[l.name] == 0 && !slices.Contains(rows, l)
	})
	for _, l := range rows {
		if !slices.ContainsFunc(x.stored, func(m letter) bool { return m.name == l.name }) {
			x.stored = append(x.stored, l)
		}
	}
}

// arrive takes a message in. It looks whether that was committed, and whether it is its turn.
func (x *exchange) arrive(name, id string) {
	x.deliver(name, id)
	if x.arrived[name]++; x.arrived[name] > 1 {
		return
	}
	n := slices.IndexFunc(x.stored, func(l letter) bool { return l.name == name })
	if n < 0 {
		x.w.problem("S12: a message of %s is published, and was not committed", name)
		return
	}
	own := x.stored[n]
	x.first = append(x.first, own)
	for _, l := range x.stored[:n] {
		if own.key != "" && l.key == own.key && l.id < own.id && x.arrived[l.name] == 0 {
			x.w.problem("S13: the message of %s is published before that of %s, which has the same key and was committed before", name, l.name)
		}
	}
}

// checkMessages is S11: a message is committed with its operation, or not at all. It is S12 for those that
// were published: no crash undoes what they tell of.
func (w *world) checkMessages() {
	if !w.sends {
		return
	}
	rows, _ := w.exchange.rows()
	w.exchange.see(rows)
	stored := make(map[string]bool)
	for _, l := range rows {
		stored[l.name] = true
	}
	for _, o := range w.history.ops {
		done, arrived := w.commits(o), w.exchange.arrived[o.name] > 0
		switch {
		case stored[o.name] && !done:
			w.problem("S11: a message of %s (%s) is stored, and it has committed nothing", o, o.work.name)
		case arrived && !done && w.history.faults[replace.String()] == 0: // a replica may lack what was durable
			w.problem("S12: the message of %s (%s) is published, and its commit was lost", o, o.work.name)
		case done && o.messages() != nil && !stored[o.name] && !arrived && !w.sentBefore(o, stored):
			w.problem("S11: %s (%s) has committed, and its message is not stored", o, o.work.name)
		}
	}
}

// commits reports whether an operation that may send a message has committed.
func (w *world) commits(o *op) bool {
	return slices.ContainsFunc(o.commits, func(k *commit) bool { return !k.lost && (!o.work.calls || o.claims(k.row)) })
}

// sentBefore reports whether another operation has stored the message of the request that o serves: one
// that is there is not stored again.
func (w *world) sentBefore(o *op, stored map[string]bool) bool {
	return slices.ContainsFunc(w.history.ops, func(p *op) bool {
		return o.id != "" && p.id == o.id && (stored[p.name] || w.exchange.arrived[p.name] > 0)
	})
}

// mailTime is how long after all faults a message is published at the latest: the pause of a key is a
// minute at most.
const mailTime = 3 * time.Minute

// delivered reports whether relays have nothing left to send, once the faults have ended.
func (w *world) delivered() bool {
	if w.plan.relays == 0 {
		return true
	}
	dead := make(map[any]bool)
	for _, r := range w.db.Rows("belay_parked") {
		dead[r["key_sum"]] = r["dead"].(int64) > 0
	}
	for _, r := range w.db.Rows("belay_message") {
		if !dead[r["key_sum"]] {
			return time.Since(w.calmed) > mailTime
		}
	}
	return len(w.exchange.queue)+len(w.exchange.taken) == 0 || time.Since(w.calmed) > mailTime
}

// checkDelivered is S12 in the end: what was committed is published, or waits for people behind a dead letter.
func (w *world) checkDelivered() {
	if w.plan.relays == 0 {
		return
	}
	w.checkMessages()
	dead := make(map[any]bool)
	for _, r := range w.db.Rows("belay_parked") {
		dead[r["key_sum"]] = r["dead"].(int64) > 0
	}
	for _, r := range w.db.Rows("belay_message") {
		if !dead[r["key_sum"]] {
			w.problem("S12: %s is not published", r["body"])
		}
	}
	for _, o := range w.history.ops {
		if o.bad && w.exchange.arrived[o.name] > 0 {
			w.problem("S12: the message of %s was rejected, and arrived", o)
		}
	}
}

// relayed reports whether the faults may end: relays have sent all, or have had their time.
func (w *world) relayed() bool {
	if w.plan.relays == 0 || w.calm {
		return true
	}
	w.exchange.idle++
	x := w.exchange
	return x.idle > 300 || len(x.frozen)+len(x.queue)+len(x.taken) == 0 && !x.waits()
}

// awake returns the calls of processes that are not paused.
func (w *world) awake(calls []*call) []*call {
	for name, until := range w.exchange.frozen {
		if w.calm || !time.Now().Before(until) {
			delete(w.exchange.frozen, name)
		}
	}
	return slices.DeleteFunc(calls, func(c *call) bool {
		return !w.exchange.frozen[c.process.name].IsZero() || c.text == takes && len(w.exchange.queue) == 0
	})
}

// thaws returns how long nothing may happen, as processes are paused.
func (x *exchange) thaws() time.Duration {
	d := time.Hour
	for _, until := range x.frozen {
		d = min(d, max(time.Until(until), latency))
	}
	return d
}

// tend has the statements of relays executed that are not worth a choice.
func (w *world) tend() {
	if w.plan.relays == 0 {
		return
	}
	for c := w.routine(); c != nil; c = w.routine() {
		w.gate.decide(c, w.execute(c))
		synctest.Wait()
	}
}

// matters are the statements of relays whose fate matters while a message waits.
var matters = []string{"INSERT INTO belay_", "UPDATE belay_lane SET until_ms", "DELETE ", "UPDATE belay_parked", flush}

// routine returns a statement that relays make whatever happens, and that changes nothing.
func (w *world) routine() *call {
	calls := w.awake(w.gate.calls())
	busy, looked := false, false
	for _, c := range calls {
		if !c.mails || c.db == nil || c.ctx.Err() != nil {
			continue
		}
		if c.process.kind == consumers {
			if routineOf(c) {
				return c
			}
			continue
		}
		if !slices.ContainsFunc(matters, func(part string) bool { return strings.HasPrefix(c.sql, part) }) {
			return c
		}
		if !looked {
			busy, looked = w.exchange.waits(), true
		}
		if !busy {
			return c
		}
	}
	return nil
}

// startRelay starts a relay of messages.
func (w *world) startRelay(n, life int) {
	p := &process{w: w, number: n, kind: relays, dialect: w.plan.dialect, name: fmt.Sprintf("m%d", n), background: "relay"}
	if life > 0 {
		p.name += fmt.Sprintf("r%d", life)
	}
	p.pool = sql.OpenDB(w.db.Connector(p.name, relayGate{w, p}))
	p.pool.SetMaxIdleConns(8)
	p.db = openOn(w.plan.dialect, p.pool)
	var err error
	p.relay, err = relay.New(p.db, relay.Config{Name: p.name, Routes: []relay.Route{{Topic: relay.Others, To: way{w, p}}}, Logger: silent})
	must(err)
	w.processes = append(w.processes, p)
}

// A relayGate is the way of a relay to the database.
type relayGate struct {
	w *world
	p *process
}

func (g relayGate) Pass(ctx context.Context, s simdb.Call) simdb.Fate {
	c := &call{process: g.p, actor: g.p.name + ".relay", text: brief(s.Text), sql: s.Text, ctx: ctx, db: &s, cuts: true, mails: true}
	if c.conn = connOf(g.p, s); s.Flush {
		c.actor, c.text, c.sql, c.cuts = g.p.name+".database", flush, flush, false
	}
	return simdb.Fate(g.w.gate.pass(c))
}

// A way is that of a relay to the broker.
type way struct {
	w *world
	p *process
}

var errNack = errors.New("the broker has not taken it")

func (t way) Publish(ctx context.Context, m relay.Message) error {
	_, name, _ := strings.Cut(string(m.Body), ":")
	bad := slices.ContainsFunc(t.w.history.ops, func(o *op) bool { return o.name == name && o.bad })
	c := &call{process: t.p, actor: t.p.name + ".courier", text: "MAIL " + name, ctx: ctx, cuts: true, mails: true, sends: true}
	c.run = func() {
		if !bad {
			t.w.exchange.arrive(name, m.ID)
		}
	}
	switch t.w.gate.pass(c) {
	case executed:
		if bad {
			return relay.ErrRejected
		}
		return nil
	case cutBefore:
		return relay.ErrUnavailable
	case refused, mistaken:
		return errNack
	}
	return errors.New("the broker has not confirmed it")
}

// relayFault is a fault of a relay, or of one of its requests.
func (d *dice) relayFault(top *call) *choice {
	switch d.IntN(8) {
	case 0, 1, 2:
		return &choice{do: freeze, on: top.process.name, forTime: []time.Duration{4 * time.Second, 32 * time.Second, 45 * time.Second}[d.IntN(3)]}
	case 3:
		return &choice{do: killProcess, on: top.process.name}
	case 4:
		if top.process.kind == consumers {
			return &choice{do: crash, on: "the other database"}
		}
		return &choice{do: crash}
	}
	if top.text == takes {
		return nil
	}
	if top.sends && d.IntN(3) == 0 { // others commit meanwhile, and are read
		d.rest(top.actor)
		return &choice{do: wait, forTime: pauses[d.IntN(2)]}
	}
	fates := []action{cut, cutAnswer, delay}
	switch {
	case top.sends:
		fates = append(fates, refuse, mistake)
	case top.run != nil: // a consumer's answer: without one the message comes again
		return &choice{do: killProcess, on: top.process.name}
	case top.text == flush && top.process.kind == consumers:
		return &choice{do: crash, on: "the other database"}
	case top.text == flush:
		return &choice{do: crash}
	}
	return &choice{do: fates[d.IntN(len(fates))], on: top.label()}
}
