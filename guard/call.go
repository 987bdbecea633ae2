package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"
)

// call is one Do, as it was asked for.
type call struct {
	options
	guard   *Guard
	ctx     context.Context // the caller's, and what the Observer adds
	plan    plan
	work    work
	request *claiming // that it serves, nil if there is none
	turn    turn      // its wait for the locks

	reserves claims  // those of transaction 1 of a Call, nil for all others
	inside   bool    // a transaction of a Call, which counts as a call that runs
	outer    *keySet // the lock of the Call, under which it runs, nil if there is none

	conclusion conclusion // of its run
}

// work is what a call does.
type work struct {
	op      Op
	change  Change             // that op makes, if it was given to Apply
	applies bool               // it was
	anew    func(*series) bool // whether op is to run again, nil if it is not for Once
}

// prepare plans what the call asks of the first layer, and what it claims.
func (c *call) prepare() (err error) {
	if c.request, err = newClaiming(c.requests, c.guard.records()); err != nil {
		return err
	}
	key := c.request.lockKey()
	if c.reserves != nil {
		key = c.plan.main
	}
	if err := c.plan.fill(key, &c.options); err != nil {
		return err
	}
	if c.maxBody < 0 || c.maxBody > largestBody {
		return fmt.Errorf("guard: MaxAnswer of %d bytes is outside 0 to %d", c.maxBody, largestBody)
	}
	if c.request != nil {
		c.request.hold(&c.plan)
		c.request.answers = c.work.anew != nil
	}
	return nil
}

// alone runs the call in transactions of its own.
func (c *call) alone() error {
	r := c.run()
	defer func() {
		r.leave()
		c.conclusion = r.conclusion
	}()
	if err := r.enter(); err != nil {
		return err
	}
	c.turn.became = cmp.Or(c.turn.became, combinedAlone)
	return c.attempts(r)
}

// attempts makes attempts, all under the same leases, and reports how the last one ended.
func (c *call) attempts(r *run) error {
	ctx, cancel := r.keys.within(c.ctx)
	defer cancel(nil)
	op := c.op()
	for again := true; again; {
		r.series.attempt(newScope(ctx, &r.keys, c.request), op)
		anew := c.work.anew
		again = anew != nil && anew(&r.series) || r.series.again()
	}
	cancel(nil)
	return r.finish(r.series.last)
}

var errCombineDo = errors.New("guard: Combine is an option of Apply: what an operation does cannot be combined, so leave it out")

// member returns the call as one that may share its transaction, nil if it runs alone. ctx is
// the caller's.
func (c *call) member(ctx context.Context) *member {
	g, key := c.guard, c.plan.main
	alike := c.combine && c.wait > 0 && !ended(ctx) && len(c.plan.keys) == 1 && c.remember == 0 && len(c.protects) == 0 && !c.plan.keys[0].request && c.retries == changeTries
	if !alike || g.layer.outages.on(key) != nil || g.layer.locker.Holds(ctx, key) {
		return nil
	}
	change := c.work.change
	change.sends.request = c.request
	shape, steps, ok := change.alike(ctx, &g.crews.folding)
	if !ok {
		return nil
	}
	return &member{waiter: newWaiter(ctx, key, shape, c.plan.until), caller: c, turn: &c.turn, steps: steps, serves: serve(c.request)}
}

// op returns the operation. Its errors say nothing of the request.
func (c *call) op() Op {
	if c.request == nil {
		return c.work.op
	}
	return func(ctx context.Context, tx *gorm.DB) error { return c.request.own(c.work.op(ctx, tx)) }
}

// run returns a run of the call.
func (c *call) run() *run {
	g := c.guard
	r := &run{ctx: c.ctx, reporter: g.reporter, turn: &c.turn, request: c.request, reserves: c.reserves != nil, inside: c.inside, outer: c.outer,
		keys:   keySet{layer: g.layer, ctx: c.ctx, outer: c.outer},
		series: series{db: g.db, sql: g.sql, cfg: &g.cfg, metrics: g.metrics, ctx: c.ctx, plan: &c.plan, change: c.work.change, canary: g.canary, gate: g.gate, claims: noClaims{}, budget: budget{work: c.retries}},
	}
	r.keys.of(&c.plan)
	r.series.held = &r.keys
	switch {
	case c.reserves != nil:
		r.series.claims, r.series.budget.claim = c.reserves, claimTries
	case c.request != nil:
		r.series.claims, r.series.budget.claim = c.request, claimTries
	}
	return r
}
