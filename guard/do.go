package guard

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
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
	return g.call(ctx, &call{guard: g, key: key, op: op}, opts)
}

// Apply makes change under the lock on key, as Do runs an operation. It runs the change
// again, up to three times under the same lock, when the database has rolled it back for
// a deadlock or the like.
func (g *Guard) Apply(ctx context.Context, key string, change Change, opts ...Option) error {
	c := &call{guard: g, key: key, op: change.Run, change: change, applies: true}
	c.retries = changeTries
	return g.call(ctx, c, opts)
}

func (g *Guard) call(ctx context.Context, c *call, opts []Option) error {
	for _, opt := range opts {
		opt(&c.options)
	}
	if err := c.plan(); err != nil {
		return err
	}
	if c.combine && !c.applies {
		return errCombineDo
	}
	if outer := dbtx.FromContext(ctx); outer != nil {
		return c.nest(ctx, outer)
	}
	if !g.running.enter() {
		return ErrClosed
	}
	defer g.running.leave()
	c.policy = g.Policy()
	c.begun = time.Now()
	c.until = c.begun.Add(c.wait)
	if m := c.member(ctx); m != nil {
		return c.observed(ctx, m.join)
	}
	return c.observed(ctx, c.alone)
}

// observed runs a call to its end.
func (c *call) observed(ctx context.Context, run func() error) (err error) {
	ctx, end := c.guard.cfg.Observer.Start(ctx, StepDo, c.key)
	c.ctx = ctx
	err = errPanicked
	defer func() {
		c.guard.metrics.ended(err)
		if c.combine {
			c.guard.metrics.combined.WithLabelValues(cmp.Or(c.became, combinedNone)).Inc()
		}
		end(err)
	}()
	err = run()
	return err
}

// alone runs the call in transactions of its own.
func (c *call) alone() error {
	defer c.leave()
	if err := c.enter(); err != nil {
		return err
	}
	c.became = cmp.Or(c.became, combinedAlone)
	return c.run()
}

// enter gets the locks, or what stands for them.
func (c *call) enter() (err error) {
	ctx := c.beginWait()
	err = errPanicked
	defer func() { c.hasWaited(err) }()
	err = c.acquire(ctx)
	return err
}

// beginWait notes that the wait for the lock, or for a turn under it, begins.
func (c *call) beginWait() context.Context {
	if c.endWait == nil {
		c.waiting, c.endWait = c.guard.cfg.Observer.Start(c.ctx, StepLock, c.key)
	}
	return c.waiting
}

// hasWaited notes that the wait is over. The metric has the first one of a call.
func (c *call) hasWaited(err error) {
	end := c.endWait
	if end == nil {
		return
	}
	c.endWait = nil
	if !c.waited {
		c.waited = true
		c.guard.metrics.lockWait.Observe(time.Since(c.begun).Seconds())
	}
	end(err)
}

// run makes attempts, all under the same leases.
func (c *call) run() error {
	ctx, cancel := c.within(c.ctx)
	defer cancel()
	for {
		if e := c.attempt(callContext{ctx, c}); !c.again(e) {
			cancel()
			return c.finish(e)
		}
	}
}

// leave gives back what enter got and nobody has given back, for somebody's code
// may panic, or end its goroutine. Then a lock that turns out to be gone is reported here.
func (c *call) leave() {
	h, gone := c.release(false)
	for _, o := range c.outages {
		o.running.Add(-1)
	}
	if c.outages != nil {
		c.guard.outages.readmit()
	}
	if gone != nil && c.last.err == errPanicked && !errors.Is(gone, lock.ErrClosed) { //nolint:errorlint // of attempt itself
		h.report(notify.OutcomeRolledBack, gone)
	}
}
