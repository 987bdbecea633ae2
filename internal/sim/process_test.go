package sim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/once"
	"github.com/belaygo/belay/relay"
)

const ttl = 6 * time.Second

// A kind is what a process does. Only those of callers have these.
type kind int

const (
	callers kind = iota
	relays
	consumers
)

// A process has its own Locker, Guard, pool of connections, and outbox. What comes after
// a kill is another process.
type process struct {
	w          *world
	name       string
	dialect    string
	number     int
	dead       bool   // guarded by gate.mu
	background string // what uses the database beside the operations
	killed     int    // the step
	callers    int    // that have not ended; guarded by world.mu
	kind       kind

	locker *lock.Locker
	guard  *guard.Guard
	box    *outbox.Outbox
	purger *once.Purger
	relay  *relay.Relay
	pool   *sql.DB
	db     *gorm.DB
}

type opKey struct{}

// A callerContext is the context of an operation. Its caller pauses whenever a Locker looks
// for a lease in it, which it does before the caller joins the queue of a key. So where
// several callers of a process go on at once, as those whom a crew gives back, the scheduler
// decides who is first in that queue, and not Go's.
type callerContext struct {
	context.Context
	op *op
}

const queue = "QUEUE"

var lockPackage = reflect.TypeFor[lock.Locker]().PkgPath()

func (c callerContext) Value(key any) any {
	switch {
	case key == opKey{}:
		return c.op
	case reflect.TypeOf(key).PkgPath() == lockPackage:
		c.op.process.pause(c, c.op, queue)
	}
	return c.Context.Value(key)
}

// actor returns the operation that makes a call with ctx, and the name of who makes it.
func (p *process) actor(ctx context.Context, part string) (*op, string) {
	if o, _ := ctx.Value(opKey{}).(*op); o != nil {
		return o, o.name
	}
	return nil, p.name + "." + part
}

// start starts process number n, after it was killed life times.
func (w *world) start(n, life int) {
	p := &process{w: w, number: n, dialect: w.plan.dialect, name: fmt.Sprintf("p%d", n), background: "outbox"}
	if life > 0 {
		p.name += fmt.Sprintf("r%d", life)
	}
	var err error
	p.locker, err = lock.New(engine{w, p}, lock.Config{TTL: ttl, Logger: silent})
	must(err)
	if w.db != nil {
		p.open()
	}
	w.processes = append(w.processes, p)
	for i, specs := range w.plan.work[n] {
		var ops []*op
		for k, s := range specs {
			o := &op{spec: s, process: p, name: fmt.Sprintf("%s%c%d", p.name, 'a'+i, k), own: fmt.Sprintf("%d%c%d", n, 'a'+i, k), first: k == 0}
			ops = append(ops, o)
			w.history.ops = append(w.history.ops, o)
		}
		w.mu.Lock()
		p.callers++
		w.mu.Unlock()
		go p.caller(ops)
	}
}

// open opens what uses the database.
func (p *process) open() {
	w := p.w
	connector := w.db.Connector
	if w.plan.second && p.number%2 == 1 {
		connector = w.db.SecondConnector
	}
	p.pool = sql.OpenDB(connector(p.name, dbGate{w, p}))
	p.pool.SetMaxIdleConns(8)
	p.db = openOn(w.plan.dialect, p.pool)
	var err error
	to := reporter{w: w, process: p}
	if w.plan.outbox {
		p.box, err = outbox.New(p.db, outbox.Config{Relay: broker{w, p}, RelayTimeout: time.Second, Logger: silent})
		must(err)
		to.next = p.box
	}
	if w.plan.purges && p.number < 2 {
		p.background = purges
		p.purger, err = once.NewPurger(p.db, once.PurgerConfig{Keep: keeps, KeepAnswers: keeps / 2, Every: 2 * time.Second, Logger: silent})
		must(err)
	}
	p.guard, err = guard.New(p.db, p.locker, guard.Config{
		Service: "sim", Instance: p.name, Publisher: to, OnUnavailable: w.plan.policy, Logger: silent,
	})
	must(err)
}

var silent = slog.New(slog.DiscardHandler)

// stop ends a process whose calls end at once.
func (p *process) stop() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if p.guard != nil {
		_ = p.guard.Close(ctx)
	}
	if p.box != nil {
		_ = p.box.Close(ctx)
	}
	if p.purger != nil {
		_ = p.purger.Close(ctx)
	}
	if p.relay != nil {
		_ = p.relay.Close(ctx)
	}
	if p.locker != nil {
		_ = p.locker.Close(ctx)
	}
	if p.pool != nil {
		_ = p.pool.Close()
	}
}

// forget lets go of the pool. The plugin in base remembers what is known of a pool until
// that is collected, and with it connections, which know the process by their gate.
func (p *process) forget() {
	p.pool, p.db, p.guard, p.box, p.purger, p.relay = nil, nil, nil, nil, nil, nil
}

// caller makes operations one after the other.
func (p *process) caller(ops []*op) {
	defer func() {
		p.w.mu.Lock()
		p.callers--
		p.w.mu.Unlock()
		if !p.w.gate.isDead(p) {
			p.w.gate.wake()
		}
	}()
	for _, o := range ops {
		background, giveUp := context.WithCancel(context.Background())
		defer giveUp()
		p.w.mu.Lock()
		o.giveUp = giveUp
		p.w.mu.Unlock()
		ctx := callerContext{background, o}
		if o.rest > 0 {
			<-time.After(o.rest)
		}
		if !p.pause(ctx, o, fmt.Sprintf("DO %s %s", o.work.name, o.key)) {
			return
		}
		o.began = p.w.step
		begun := time.Now()
		err := p.perform(ctx, o)
		if p.w.gate.isDead(p) {
			return
		}
		o.err, o.took, o.returned = err, time.Since(begun), time.Now()
		p.w.mu.Lock()
		p.w.returned = append(p.w.returned, o)
		p.w.mu.Unlock()
	}
}

// perform makes an operation, whose panic is an error of its caller's.
func (p *process) perform(ctx context.Context, o *op) (err error) {
	defer func() {
		if r := recover(); r == any(errPanic) {
			err = errPanic
		} else if r != nil {
			panic(r)
		}
	}()
	return o.work.run(ctx, p, o)
}

// pause is a moment in which the scheduler may let others go first. It returns false if
// the process was killed.
func (p *process) pause(ctx context.Context, o *op, text string) bool {
	return p.w.gate.pass(&call{process: p, op: o, actor: o.name, text: text, ctx: context.WithoutCancel(ctx)}) == executed
}

// A reporter notes the events that a Do hands over.
type reporter struct {
	w       *world
	process *process
	next    notify.Publisher
}

func (r reporter) Publish(ctx context.Context, ev notify.Event) error {
	if r.w.gate.isDead(r.process) {
		return context.Canceled
	}
	o, _ := ctx.Value(opKey{}).(*op)
	r.w.history.report(o, ev)
	r.w.gate.trace.published(o, ev)
	if r.next == nil {
		return nil
	}
	return r.next.Publish(ctx, ev)
}

// A broker is the way of one process to the monitor, which stores each event once.
type broker struct {
	w *world
	p *process
}

func (b broker) Publish(ctx context.Context, ev notify.Event) error {
	c := &call{process: b.p, actor: b.p.name + ".relay", text: "PUBLISH " + string(ev.Verdict) + " " + ev.Key, ctx: ctx, cuts: true}
	c.run = func() { b.w.history.monitor[ev.ID]++ }
	if b.w.gate.pass(c) != executed {
		return errors.New("not confirmed")
	}
	return nil
}
