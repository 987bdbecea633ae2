package guard

import (
	"cmp"
	"context"
	"time"

	"github.com/belaygo/belay/internal/dbtx"
)

// Do runs op once under the lock on key. See the error variables for what it
// returns. If op panics, everything is rolled back, the lock is released, and
// the panic goes on.
//
// Inside an operation, with its ctx, Do with a key of that operation runs op in a
// savepoint of the same transaction: what it returns is op's own error, and judgement
// waits for the end of the outer Do. Another key there is an error, ErrNested.
func (g *Guard) Do(ctx context.Context, key string, op Op, opts ...Option) error {
	if op == nil {
		return errNilOp
	}
	return g.call(ctx, &call{guard: g, plan: plan{main: key}, work: work{op: op}}, opts)
}

// Apply makes change under the lock on key, as Do runs an operation. It runs the change
// again, up to three times under the same lock, when the database has rolled it back for
// a deadlock or the like, or when another caller has changed a row first: see Retries.
func (g *Guard) Apply(ctx context.Context, key string, change Change, opts ...Option) error {
	c := &call{guard: g, plan: plan{main: key}, work: work{op: change.Run, change: change, applies: true}}
	c.retries = changeTries
	return g.call(ctx, c, opts)
}

func (g *Guard) call(ctx context.Context, c *call, opts []Option) error {
	for _, opt := range opts {
		opt(&c.options)
	}
	if err := c.prepare(); err != nil {
		return err
	}
	if c.combine && !c.work.applies {
		return errCombineDo
	}
	if outer := dbtx.FromContext(ctx); outer != nil {
		return c.nest(ctx, outer)
	}
	if c.inside {
		g.running.add()
	} else if !g.running.enter() {
		return ErrClosed
	}
	defer g.running.leave()
	c.turn = turn{observer: g.cfg.Observer, metrics: g.metrics, key: c.plan.main, begun: time.Now()}
	c.plan.policy, c.plan.until = g.Policy(), c.turn.begun.Add(c.wait)
	return g.observed(ctx, c)
}

// observed runs a call to its end.
func (g *Guard) observed(ctx context.Context, c *call) (err error) {
	m := c.member(ctx)
	traced, end := g.cfg.Observer.Start(ctx, StepDo, c.plan.main)
	c.ctx = traced
	err = errPanicked
	defer func() {
		g.metrics.ended(err)
		if c.combine {
			g.metrics.combined.WithLabelValues(cmp.Or(c.turn.became, combinedNone)).Inc()
		}
		end(err)
	}()
	if m != nil {
		err = g.crews.join(traced, m)
	} else {
		err = c.alone()
	}
	return err
}
