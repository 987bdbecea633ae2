package sim

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/inbox"
	"github.com/belaygo/belay/internal/sim/simdb"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// A delivery is a message on its way to the service that handles it.
type delivery struct {
	name, id string
	again    bool
}

// takes is the verb of a consumer that asks for the next message.
const takes = "TAKE"

// effectSchemas make the table of what messages have led to. Nothing in it is unique.
var effectSchemas = map[string]string{
	"mysql":    "CREATE TABLE effects (id BIGINT AUTO_INCREMENT, message VARCHAR(64), PRIMARY KEY (id))",
	"postgres": "CREATE TABLE effects (id BIGSERIAL, message VARCHAR(64), PRIMARY KEY (id))",
}

// newInbox returns the database of the service that handles messages.
func newInbox(p plan) *simdb.Database {
	db := simdb.New(p.server, p.knobs)
	db.Exec(schemaOf("once", p.dialect)...)
	db.Exec(effectSchemas[p.dialect])
	return db
}

// startConsumer starts a process that handles messages. Its lock excludes nobody.
func (w *world) startConsumer(n, life int) {
	p := &process{w: w, number: n, kind: consumers, dialect: w.plan.dialect, name: fmt.Sprintf("c%d", n), background: "inbox"}
	if life > 0 {
		p.name += fmt.Sprintf("r%d", life)
	}
	var err error
	p.locker, err = lock.New(open{}, lock.Config{TTL: ttl, Logger: silent})
	must(err)
	p.pool = sql.OpenDB(w.inbox.Connector(p.name, relayGate{w, p}))
	p.pool.SetMaxIdleConns(8)
	p.db = openOn(w.plan.dialect, p.pool)
	p.guard, err = guard.New(p.db, p.locker, guard.Config{Service: "inbox", Instance: p.name, Logger: silent})
	must(err)
	w.processes = append(w.processes, p)
	box, err := inbox.New(p.guard, inbox.Config{Consumer: "billing"})
	must(err)
	go p.consume(box)
}

// consume handles one message after the other.
func (p *process) consume(box *inbox.Inbox) {
	for {
		var d delivery
		c := p.ask(takes, func() { d = p.w.exchange.take(p) })
		if p.w.gate.pass(c) != executed {
			return
		}
		decision, err := box.Handle(context.Background(), inbox.Message{ID: d.id, Redelivered: d.again}, func(_ context.Context, tx *gorm.DB) error {
			return tx.Exec("INSERT INTO effects (message) VALUES (?)", d.name).Error
		})
		if p.w.gate.isDead(p) {
			return
		}
		p.w.gate.pass(p.ask(fmt.Sprintf("ANSWER %s %v", d.name, decision), func() { p.w.exchange.answered(p, d, decision, err) }))
		if decision == inbox.Retry {
			<-time.After(time.Second) // as amqpinbox waits
		}
	}
}

func (p *process) ask(text string, run func()) *call {
	return &call{process: p, actor: p.name + ".consumer", text: text, ctx: context.Background(), run: run, mails: true}
}

// deliver puts a message behind the others.
func (x *exchange) deliver(name, id string) {
	if x.w.plan.consumers > 0 {
		x.queue = append(x.queue, delivery{name: name, id: id})
	}
}

func (x *exchange) take(p *process) delivery {
	d := x.queue[0]
	x.queue = x.queue[1:]
	x.taken[p] = d
	return d
}

// requeue puts back what a process has not answered for.
func (x *exchange) requeue(p *process) {
	if d, ok := x.taken[p]; ok {
		delete(x.taken, p)
		d.again = true
		x.queue = slices.Insert(x.queue, 0, d)
	}
}

// answered takes in a decision. It is S14: what is acknowledged has taken effect, and nothing is rejected.
func (x *exchange) answered(p *process, d delivery, decision inbox.Decision, err error) {
	switch decision {
	case inbox.Ack:
		delete(x.taken, p)
		if x.effects()[d.name] != 1 {
			x.w.problem("S14: the message of %s is acknowledged, and has %d effects", d.name, x.effects()[d.name])
		}
	case inbox.Reject:
		x.w.problem("S14: the message of %s is rejected: %v", d.name, err)
	default:
		x.requeue(p)
	}
}

// effects returns how often messages have taken effect.
func (x *exchange) effects() map[string]int {
	n := make(map[string]int)
	for _, r := range x.w.inbox.Rows("effects") {
		n[r["message"].(string)]++
	}
	return n
}

// checkHandled is S14 and S15: each message that arrived has taken effect once, and a single consumer handles
// those of a key in the order in which they have arrived first.
func (w *world) checkHandled() {
	if w.plan.consumers == 0 {
		return
	}
	x := w.exchange
	effects := x.effects()
	for name, n := range x.arrived {
		if n > 0 && effects[name] != 1 {
			w.problem("S14: the message of %s has arrived, and has %d effects", name, effects[name])
		}
	}
	if w.plan.consumers > 1 {
		return
	}
	at := func(name string) int {
		return slices.IndexFunc(w.inbox.Rows("effects"), func(r map[string]any) bool { return r["message"] == name })
	}
	for i, b := range x.first {
		for _, a := range x.first[:i] {
			if a.key != "" && a.key == b.key && at(a.name) > at(b.name) {
				w.problem("S15: the message of %s takes effect before that of %s, which has the same key and has arrived before", b.name, a.name)
			}
		}
	}
}

var preparing = []string{"CONNECT", "PING", "SELECT", "SHOW", "SAVEPOINT", "START", "BEGIN", "SET TRANSACTION", "ROLLBACK"}

// routineOf reports whether a statement of a consumer is not worth a choice.
func routineOf(c *call) bool {
	return slices.ContainsFunc(preparing, func(part string) bool { return strings.HasPrefix(c.sql, part) })
}

// open is an engine of locks whose locks everybody has.
func (open) Acquire(context.Context, lockengine.Request, time.Duration) (lockengine.Grant, error) {
	return lockengine.Grant{Token: 1}, nil
}

func (open) Renew(_ context.Context, rs []lockengine.Request, _ time.Duration) []error {
	return make([]error, len(rs))
}

func (open) Release(context.Context, lockengine.Request) error { return nil }

func (open) Inspect(context.Context, string) (lockengine.Holder, error) {
	return lockengine.Holder{}, nil
}

func (open) Close(context.Context) error { return nil }
