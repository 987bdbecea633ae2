package sim

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
)

// callTimeout is how long a call of the bank may take.
const callTimeout = 3 * time.Second

// untils are for how long a call may begin: with the shorter one nobody takes over from a process
// that has died.
var untils = []time.Duration{10 * time.Second, 40 * time.Second}

// rests are how long a caller waits before its next operation, and longer than a lease.
var rests = []time.Duration{0, 4 * time.Second, 26 * time.Second}

// A Hold is what an operation has reserved for a request, and a Bill how that was settled.
type (
	Hold struct {
		ID      int64
		Request string `gorm:"size:64"`
		Op      string `gorm:"size:64;uniqueIndex"`
	}
	Bill struct {
		ID       int64
		Request  string `gorm:"size:64"`
		Op       string `gorm:"size:64;uniqueIndex"`
		Declined bool
	}
)

// Runs of a receipt, which say what became of a call.
const (
	notCalled = iota
	paid
	declined
)

var errSettle = errors.New("the settlement fails")

// calling are the operations with a call of the bank in their middle.
func calling() []*workload {
	pay := func(name string, w workload) *workload {
		w.name, w.serves, w.calls, w.answers, w.keyed, w.sends = name, true, true, true, true, true
		w.run = func(ctx context.Context, p *process, o *op) (err error) {
			opts := []guard.Option{guard.Wait(o.wait)}
			if w.named {
				opts = append(opts, guard.Also(o.key, &Account{ID: o.number()}))
			}
			o.answer, err = o.payment(p).Run(ctx, p.guard, o.once(), o.request, opts...)
			return err
		}
		return &w
	}
	return []*workload{
		pay("call: pay", workload{}),
		pay("call: pay and take", workload{rows: []string{"accounts"}, named: true}),
		pay("call: pay or refusal", workload{picky: true}),
		pay("call: pay or failure", workload{fails: true}),
		pay("call: pay or panic", workload{panics: true}),
	}
}

// payment is the Call of o. The first operation of a caller may fail, as its workload says.
func (o *op) payment(p *process) guard.Call[request, receipt, receipt] {
	until := untils[1]
	if p.w != nil {
		until = p.w.plan.until
	}
	return guard.Call[request, receipt, receipt]{
		Name: "take", Timeout: callTimeout, Until: until,
		Reserve: func(ctx context.Context, tx *gorm.DB, q request) error {
			if o.work.picky && o.first {
				return guard.Refuse(receipt{o.name, notCalled}, o.messages()...)
			}
			if o.work.named {
				if err := o.account(o.key, -1).Run(ctx, tx); err != nil {
					return err
				}
			}
			return tx.Create(&Hold{Request: q.id, Op: o.name}).Error
		},
		Do: func(ctx context.Context, _ string, q request) (receipt, error) {
			if o.process == nil {
				return receipt{q.id, paid}, nil
			}
			defer p.w.begins(o)()
			no, err := p.pay(ctx, o)
			switch {
			case err != nil:
				return receipt{}, err
			case o.work.panics && o.first:
				panic(errPanic)
			}
			o.got = true
			switch {
			case no:
				return receipt{}, guard.Refuse(receipt{q.id, declined})
			}
			return receipt{q.id, paid}, nil
		},
		Settle: func(ctx context.Context, tx *gorm.DB, q request, out guard.Outcome[receipt]) (receipt, error) {
			if out.Value.By != q.id || out.Refused != (out.Value.Run == declined) {
				return receipt{}, errors.New("it is another call's outcome")
			}
			if o.work.fails && o.first {
				return receipt{}, errSettle
			}
			if err := tx.Create(&Bill{Request: q.id, Op: o.name, Declined: out.Refused}).Error; err != nil {
				return receipt{}, err
			}
			return receipt{o.name, out.Value.Run}, o.send(ctx, tx)
		},
	}
}
