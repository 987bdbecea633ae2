package table1

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/belaygo/belay/benchmark/internal/load"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

// A plan is what the users of a round send.
type plan struct {
	requests []load.Request
	orders   []string  // inserted, each requested twice
	item     int64     // sold
	accident *accident // nil = none
}

// newPlan plans a round. With a master, the accident happens to it.
func (e *experiment) newPlan(ctx context.Context, m shop.Method, users int, master *stage.Master) (*plan, error) {
	p := &plan{item: 1 + rand.Int64N(e.cfg.Rows)}
	value := func(int) string { return strconv.FormatInt(p.item, 10) }
	if !m.Sells() {
		for range (users + 1) / 2 {
			p.orders = append(p.orders, e.nextOrder())
		}
		value = func(i int) string { return p.orders[i/2] }
	}
	special := -1
	if master != nil {
		var err error
		if special, err = e.planAccident(ctx, m, p, *master); err != nil {
			return nil, err
		}
	}
	for i := range users {
		if i/2 == special {
			continue // the first and the last of the requests
		}
		p.requests = append(p.requests, load.Request{Addr: e.Stage.Addr(i), Path: m.Path(value(i))})
	}
	return p, nil
}

// planAccident chooses an order whose lock is on master. The first request for
// it holds the lock and stands still; the second goes to another instance once
// the master is dead. It returns the index of the order.
func (e *experiment) planAccident(ctx context.Context, m shop.Method, p *plan, master stage.Master) (int, error) {
	var keys []string
	for _, no := range p.orders[:e.cfg.Users/2] { // those with two requests
		keys = append(keys, m.Key(no))
	}
	special, err := e.Stage.Cluster.FirstServed(ctx, master, keys)
	if err != nil {
		return 0, err
	}
	if special < 0 {
		return 0, fmt.Errorf("none of the %d orders has its lock on %s", len(keys), master.Addr)
	}
	no := p.orders[special]
	p.accident = &accident{stage: e.Stage, master: master, order: no, after: e.cfg.Users / 4, killed: make(chan struct{})}
	e.gate.accident.Store(p.accident)
	const holder, other = 0, 1
	addr, path := e.Stage.Pin(holder, m.Path(no)+"&hold=1")
	p.requests = append(p.requests, load.Request{Addr: addr, Path: path})
	addr, path = e.Stage.Pin(other, m.Path(no))
	p.requests = append(p.requests, load.Request{Addr: addr, Path: path, After: p.accident.killed})
	return special, nil
}

// nextOrder returns a new order number. It sorts after all that came before.
func (e *experiment) nextOrder() string {
	e.number++
	return fmt.Sprintf("R%d-%09d", e.Result.Started.Unix(), e.number)
}
