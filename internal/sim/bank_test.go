package sim

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A bank is the other service of operations with a call in their middle. It acts once for each id,
// for as long as it remembers that. Only the scheduler calls it.
type bank struct {
	w       *world
	known   map[string]memory // by request
	charged map[string]int    // how often, since the request was purged last
	said    map[said]bool     // since then, too
}

// A memory is what the bank knows of an id.
type memory struct {
	content  string
	declined bool
	until    time.Time
}

// A said is an answer that the bank has given, though perhaps nobody got it.
type said struct {
	id       string
	declined bool
}

func newBank(w *world) *bank {
	return &bank{w: w, known: make(map[string]memory), charged: make(map[string]int), said: make(map[said]bool)}
}

var (
	errAway = errors.New("the bank can't be reached")
	errBusy = errors.New("the bank is busy")
)

// pay charges for a request, unless it remembers that. It forgets an id when all calls that began
// in time have ended.
func (b *bank) pay(q request) (declined bool) {
	m, ok := b.known[q.id]
	if !ok || time.Now().After(m.until) {
		m = memory{q.content, b.w.plan.declined == q.id, time.Now().Add(b.w.plan.until + callTimeout)}
		b.known[q.id] = m
		if !m.declined {
			b.charged[q.id]++
		}
		if b.charged[q.id] > 1 {
			b.w.problem("C1: request %s is charged for %d times", q.id, b.charged[q.id])
		}
	}
	if m.content != q.content {
		b.w.problem("C2: request %s is called for with %q and with %q", q.id, m.content, q.content)
	}
	b.said[said{q.id, m.declined}] = true
	return m.declined
}

// forget has a request begin anew, since its claim was purged: it is older than what the bank
// remembers.
func (b *bank) forget(id string) {
	delete(b.known, id)
	delete(b.charged, id)
	delete(b.said, said{id, false})
	delete(b.said, said{id, true})
}

// pays is the verb of a call of the bank.
const pays = "PAY"

// pay asks the bank to charge for the request of o. A request that is on its way for longer than
// the caller waits is lost.
func (p *process) pay(ctx context.Context, o *op) (declined bool, err error) {
	begun := time.Now()
	c := &call{process: p, op: o, actor: o.name, text: pays + " " + o.id, ctx: ctx, cuts: true, pays: true}
	c.run = func() {
		if time.Since(begun) <= callTimeout && !p.w.bankDown {
			declined = p.w.bank.pay(o.request)
		} else {
			err = errAway
		}
	}
	switch f := p.w.gate.pass(c); f {
	case executed:
		return declined, err
	case refused, mistaken:
		return false, errBusy
	}
	return false, fmt.Errorf("%w: the connection broke", errAway)
}
