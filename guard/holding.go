package guard

import (
	"context"
	"errors"
	"time"

	"github.com/belaygo/belay/notify"
)

// hold runs f under the lock on key, within a call that runs. The context of f carries the lock, so
// that calls of f acquire it again at once, and ends with it. f returns whether such a call has
// reported its end: then a loss of the lock is not reported once more.
func (g *Guard) hold(ctx context.Context, key string, patience time.Duration, f func(ctx context.Context, keys *keySet) (reported bool, err error)) error {
	c := &call{guard: g, ctx: ctx, plan: plan{main: key}}
	c.wait = patience
	if err := c.prepare(); err != nil {
		return err
	}
	c.turn = turn{observer: g.cfg.Observer, metrics: g.metrics, key: key, begun: time.Now()}
	c.plan.policy, c.plan.until = g.Policy(), c.turn.begun.Add(patience)
	r := c.run()
	defer r.leave()
	if err := r.enter(); err != nil {
		return err
	}
	held, cancel := r.keys.within(ctx)
	defer cancel()
	r.series.last = ending{err: errPanicked, outcome: notify.OutcomeRolledBack}
	reported, err := f(scope{Context: held, keys: &r.keys}, &r.keys)
	cancel()
	r.series.last = ending{err: err, outcome: outcomeOf(err, reported)}
	if reported {
		r.finished = true
		r.keys.settle(r.series.last.outcome, false)
		return err
	}
	return r.finish(r.series.last)
}

// outcomeOf returns how a call ended that has made transactions. Unless one of these has reported its
// end, an error is of the program.
func outcomeOf(err error, reported bool) notify.Outcome {
	switch {
	case err == nil:
		return notify.OutcomeCommitted
	case reported && errors.Is(err, ErrUnknown):
		return notify.OutcomeUnknown
	}
	return notify.OutcomeRolledBack
}
