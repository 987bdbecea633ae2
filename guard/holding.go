package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// A holding is the lock on the request of a Call, which its transactions acquire again at once. They
// leave it to the holding to report that the lock was lost: one loss is one event, with the outcome
// of the whole Run.
type holding struct {
	run      *run
	outcome  notify.Outcome // of the Run: rolled back, until it is settled or a COMMIT is of unknown outcome
	loss     *loss          // of the lock, nil if it was held until its release
	reported bool           // an event of a transaction says so already
}

// hold acquires the lock on key, within a call that runs. It is not counted among the operations that
// run without a lock: the transactions are, as long as they have a connection.
func (g *Guard) hold(ctx context.Context, key string, patience time.Duration) (*holding, error) {
	c := &call{guard: g, ctx: ctx, plan: plan{main: key}}
	c.wait = patience
	if err := c.prepare(); err != nil {
		return nil, err
	}
	c.turn = turn{observer: g.cfg.Observer, metrics: g.metrics, key: key, begun: time.Now()}
	c.plan.policy, c.plan.until = g.Policy(), c.turn.begun.Add(patience)
	h := &holding{run: c.run(), outcome: notify.OutcomeRolledBack}
	h.run.keys.uncounted = true
	entered := false
	defer func() {
		if !entered { // the engine or the Observer may have panicked
			h.run.leave()
		}
	}()
	if err := h.run.enter(); err != nil {
		return nil, err
	}
	entered = true
	return h, nil
}

// keys returns what holds the lock, nil for a nil h.
func (h *holding) keys() *keySet {
	if h == nil {
		return nil
	}
	return &h.run.keys
}

// within returns ctx, but it carries the lock, and ends with it.
func (h *holding) within(ctx context.Context) (context.Context, context.CancelFunc) {
	held, cancel := h.run.keys.within(ctx)
	return &scope{Context: held, keys: &h.run.keys}, func() { cancel(nil) }
}

// learn notes how a transaction ended under the lock.
func (h *holding) learn(c conclusion) {
	if c.unknown() {
		h.outcome = c.outcome
	}
	h.reported = h.reported || slices.Contains(c.events, h.run.keys.plan.main)
}

// settledBy notes how a transaction ended that stores the answer of the request. It is deferred, like
// learn, as somebody's code may panic when that is committed.
func (h *holding) settledBy(c conclusion) {
	if h == nil {
		return
	}
	h.learn(c)
	if c.outcome == notify.OutcomeCommitted {
		h.outcome = notify.OutcomeCommitted
	}
}

// release gives the lock back. It returns err, or the loss of the lock if that has ended what err is
// the error of.
func (h *holding) release(err error) error {
	r := h.run
	r.finished = true
	lapse := r.keys.lapse()
	h.loss = firstLoss(r.keys.settle(h.outcome, false))
	if lapse == nil || !errors.Is(lapse.err, lock.ErrLost) {
		return err
	}
	if h.loss == nil && h.outcome != notify.OutcomeUnknown && !errors.Is(lapse.err, lock.ErrClosed) {
		h.loss = lapse
	}
	switch {
	case err == nil, errors.Is(err, ErrPending):
		return err
	case errors.Is(err, lock.ErrLost):
		return lapse.err
	}
	return fmt.Errorf("%w; the operation ended with: %w", lapse.err, err)
}

// leave releases the lock, if nobody has, for somebody's code may have panicked, and reports its loss.
func (h *holding) leave() {
	r := h.run
	defer r.keys.leave(h.outcome)
	defer r.series.pass.use()
	if !r.finished {
		_ = h.release(errPanicked)
	}
	if h.loss == nil || h.reported {
		return
	}
	if h.outcome != notify.OutcomeCommitted && errors.Is(h.loss.err, lock.ErrClosed) { // the program has ended it itself
		return
	}
	r.report(*h.loss, h.outcome)
}
