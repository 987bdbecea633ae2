package sim

import (
	"context"
	"strings"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
)

// transfers are the operations under two keys, and those that share transactions.
func transfers() []*workload {
	combined := func(name string, rows, own []string, of func(o *op) guard.Change) *workload {
		return &workload{name: name, rows: rows, own: own, combines: true, sends: true, run: func(ctx context.Context, p *process, o *op) error {
			return p.guard.Apply(ctx, o.key, o.with(of(o)), guard.Combine(), guard.Wait(o.wait))
		}}
	}
	between := func(name, table string, of func(o *op, key string, by int) guard.Change, protected func(id int64) any) *workload {
		return &workload{name: name, rows: []string{table}, other: []string{table}, sends: true, run: func(ctx context.Context, p *process, o *op) error {
			return p.guard.Apply(ctx, o.key, o.with(guard.All(of(o, o.key, -1), of(o, o.other(), 1))),
				guard.Also(o.other(), protected(numberOf(o.other()))), guard.Wait(o.wait))
		}}
	}
	accounts, orders := []string{"accounts"}, []string{"orders"}
	take := func(o *op) guard.Change { return o.account(o.key, -1) }
	own := func(o *op) guard.Change { return guard.Insert(&Order{No: o.own}) }
	sell := func(o *op) guard.Change { return guard.All(own(o), take(o)) }
	all := []*workload{
		between("transfer", "accounts", (*op).account, func(id int64) any { return &Account{ID: id} }),
		between("transfer with a stamp", "purses", (*op).purse, func(id int64) any { return &Purse{ID: id} }),
		{name: "order for another", rows: orders, other: []string{"stocks"}, sends: true, run: orderForAnother},
		change("take from an account", "accounts", take),
		combined("combined take", accounts, nil, take),
		combined("combined take or refusal", accounts, nil, take),
		combined("slow combined take", accounts, nil, take),
		combined("combined take with a stamp", []string{"purses"}, nil, func(o *op) guard.Change { return o.purse(o.key, -1) }),
		combined("combined order", nil, orders, own),
		combined("combined label", nil, []string{"labels"}, func(o *op) guard.Change { return guard.Insert(&Label{Code: o.own, Amount: 5}) }),
		combined("combined insert", orders, nil, func(o *op) guard.Change { return guard.Insert(&Order{No: o.key}) }),
		combined("sale", accounts, orders, sell),
		combined("sale or refusal", accounts, orders, sell),
		combined("slow sale", accounts, orders, sell),
		combined("sale of one", []string{"orders", "accounts"}, nil, func(o *op) guard.Change {
			return guard.All(guard.Insert(&Order{No: o.key}), take(o))
		}),
		combined("sale with a stamp", []string{"purses"}, orders, func(o *op) guard.Change { return guard.All(own(o), o.purse(o.key, -1)) }),
		{name: "account without the lock", rows: accounts, bare: true, run: func(ctx context.Context, p *process, o *op) error {
			return p.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
				var a Account
				if err := tx.Take(&a, o.number()).Error; err != nil {
					return err
				}
				if err := o.touch(&a.Left, &a.Names, -1); err != nil {
					return err
				}
				return tx.Save(&a).Error
			})
		}},
	}
	for _, w := range all {
		w.slow = strings.HasPrefix(w.name, "slow ")
		w.picky = w.name == "combined take or refusal" || w.name == "sale or refusal"
	}
	return all
}

// orderForAnother writes a row under each of two keys.
func orderForAnother(ctx context.Context, p *process, o *op) error {
	return p.guard.Apply(ctx, o.key, o.with(guard.All(
		guard.Insert(&Order{No: o.key}),
		guard.Update(&Stock{ID: numberOf(o.other())}, takeStock),
	)), guard.Also(o.other(), &Stock{ID: numberOf(o.other())}), guard.Wait(o.wait))
}
