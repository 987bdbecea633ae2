package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/requestkey"
	"github.com/belaygo/belay/once"
)

// A request is what an operation serves, and what it asks for.
type request struct{ id, content string }

// keeps is how long requests are kept, and twice as long as their answers.
const keeps = time.Minute

// purges is the part of a process that deletes old requests.
const purges = "purger"

// newRequest draws one that others have, too. Few ask for something else, or are not compared.
func newRequest(r *rand.Rand) request {
	q := request{"r", "a"}
	if r.IntN(5) == 0 {
		q.id = "s"
	}
	switch r.IntN(8) {
	case 0:
		q.content = "b"
	case 1:
		q.content = ""
	}
	return q
}

// prints has a request say what it asks for, as one with a call must.
func (q *request) prints() { q.content = cmp.Or(q.content, "a") }

func (q request) String() string {
	if q.id == "" {
		return ""
	}
	return fmt.Sprintf(", for request %s of %q", q.id, q.content)
}

func (q request) once() once.Request {
	r := once.Request{Operation: "take", Scope: once.Anyone, ID: q.id}
	if q.content != "" {
		r.Print = once.PrintOf(1, []byte(q.content))
	}
	return r
}

// ids are the names of requests by their sums, and locks their keys.
var ids, lockOf = map[string]string{}, map[string]string{}

func init() {
	for _, id := range []string{"r", "s"} {
		r := request{id: id}.once()
		sum := requestkey.Sum(r.Operation, r.Scope, r.ID)
		ids[string(sum[:])], lockOf[id] = id, r.Key()
	}
}

// lock is the key of the request's own lock.
func (q request) lock() string { return lockOf[q.id] }

// claim is the name of the request's row.
func (q request) claim() string { return "belay_once/" + q.id }

// serves reports whether operations of a plan serve requests.
func (p plan) serves() bool {
	return p.purges || p.some(func(s spec) bool { return s.work.serves })
}

// calls reports whether operations of a plan call the bank.
func (p plan) calls() bool { return p.some(func(s spec) bool { return s.work.calls }) }

// A receipt is an answer. It names the run that made it.
type receipt struct {
	By  string
	Run int
}

var errPanic = errors.New("the change panics")

// enters is when an operation begins that serves a request.
const enters = "ENTER"

// entered runs an operation that serves a request. The scheduler looks who else does.
func (o *op) entered(ctx context.Context, f func() error) error {
	o.runs++
	p := o.process
	if p == nil {
		return f()
	}
	if !p.pause(ctx, o, enters) {
		return context.Canceled
	}
	defer func() {
		p.w.mu.Lock()
		o.running = false
		p.w.mu.Unlock()
	}()
	return f()
}

// requests are the operations that serve requests.
func requests() []*workload {
	accounts, orders := []string{"accounts"}, []string{"orders"}
	take := func(o *op) guard.Change { return o.account(o.key, -1) }
	order := func(o *op) guard.Change { return guard.Insert(&Order{No: o.own}) }
	between := func(o *op) guard.Change { return guard.All(take(o), o.account(o.other(), 1)) }
	forOne := func(name string, w workload, of func(o *op) guard.Change, more ...guard.Option) *workload {
		w.name, w.serves, w.sends = name, true, true
		w.run = func(ctx context.Context, p *process, o *op) error {
			opts := append([]guard.Option{guard.For(o.once()), guard.Wait(o.wait)}, more...)
			key := o.key
			if w.keyed {
				key = o.lock()
			}
			for _, name := range o.keys() {
				if name != o.lock() && name != key {
					opts = append(opts, guard.Also(name, &Account{ID: numberOf(name)}))
				}
			}
			return p.guard.Do(ctx, key, func(ctx context.Context, tx *gorm.DB) error {
				return o.entered(ctx, func() error { return o.with(of(o)).Run(ctx, tx) })
			}, opts...)
		}
		return &w
	}
	onceOne := func(name string, w workload, of func(o *op) guard.Change, declines func(o *op) bool) *workload {
		w.name, w.serves, w.answers, w.keyed, w.sends = name, true, true, true, true
		w.run = func(ctx context.Context, p *process, o *op) (err error) {
			opts := []guard.Option{guard.Wait(o.wait)}
			for _, name := range o.keys() {
				if name != o.lock() {
					opts = append(opts, guard.Also(name, &Account{ID: numberOf(name)}))
				}
			}
			o.answer, err = guard.Once(ctx, p.guard, o.once(), func(ctx context.Context, tx *gorm.DB) (receipt, error) {
				err := o.entered(ctx, func() error { return o.with(of(o)).Run(ctx, tx) })
				made := receipt{o.name, o.runs}
				if err == nil && declines != nil && declines(o) {
					return receipt{}, guard.Refuse(made, o.messages()...)
				}
				return made, err
			}, opts...)
			return err
		}
		return &w
	}
	always := func(*op) bool { return true }
	first := func(o *op) bool { return o.first }
	twice, remember := guard.Retries(2), guard.Remember(time.Minute)
	taking := workload{rows: accounts}
	named := workload{rows: accounts, named: true}
	picky, panics := taking, taking
	picky.picky, panics.panics = true, true
	pickyOnce, panicsOnce := named, named
	pickyOnce.picky, panicsOnce.panics = true, true
	return []*workload{
		forOne("request: take", taking, take, twice),
		forOne("request: take with a stamp", workload{rows: []string{"purses"}}, func(o *op) guard.Change { return o.purse(o.key, -1) }, twice),
		forOne("request: order", workload{own: orders}, order, twice),
		forOne("request: order of all", workload{rows: orders, meets: true}, func(o *op) guard.Change { return guard.Insert(&Order{No: o.key}) }, twice),
		forOne("request: transfer", workload{rows: accounts, other: accounts}, between, twice),
		forOne("request: take or refusal", picky, take, twice),
		forOne("request: panic", panics, take, twice),
		forOne("request: take under its own key", workload{rows: accounts, keyed: true, named: true}, take, twice),
		forOne("request: order under its own key", workload{own: orders, keyed: true}, order),
		forOne("request: order and remember", workload{own: orders, keyed: true}, order, twice, remember),
		{name: "request: raw", own: []string{"orders", "labels"}, serves: true, run: raw},
		onceOne("once: take", named, take, nil),
		onceOne("once: order", workload{own: orders}, order, nil),
		onceOne("once: order and decline", workload{own: orders}, order, always),
		onceOne("once: transfer", workload{rows: accounts, other: accounts, named: true}, between, nil),
		onceOne("once: take or refusal", pickyOnce, take, nil),
		onceOne("once: panic", panicsOnce, take, nil),
		onceOne("once: decline", named, func(*op) guard.Change { return guard.Change{} }, always),
		onceOne("once: take or decline", named, take, first),
	}
}

// raw serves a request by statements that Belay does not understand.
func raw(ctx context.Context, p *process, o *op) error {
	return p.guard.Do(ctx, o.key, func(ctx context.Context, tx *gorm.DB) error {
		return o.entered(ctx, func() error {
			if err := tx.Exec("INSERT INTO orders (no) VALUES (?)", o.own).Error; err != nil {
				return err
			}
			return tx.Exec("INSERT INTO labels (code, amount) VALUES (?, ?)", o.own, 5).Error
		})
	}, guard.For(o.once()), guard.Wait(o.wait), guard.Retries(1))
}
