package guard

import (
	"context"
	"errors"

	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/notify"
)

// A run is a call from its locks to its report: the keys, the attempts under them, and what
// is published in the end.
type run struct {
	ctx      context.Context // the caller's, and what the Observer adds
	reporter *reporter
	turn     *turn
	keys     keySet
	series   series
	request  *claiming // that it serves, nil if there is none
	reserves bool      // it is transaction 1 of a Call
	inside   bool      // it is a transaction of a Call
	outer    *keySet   // of the Call that the run is a part of, nil if that holds nothing for it
	count    int       // how many calls' changes the transaction makes, if there are several
	finished bool      // the end of the last attempt is being reported, or has been

	conclusion conclusion // for a Call
}

// handTo makes the run that of a crew, whose members make the claims. The end of its leader's
// context does not end it.
func (r *run) handTo(k claims) {
	r.ctx, r.request = context.WithoutCancel(r.ctx), nil
	r.series.ctx, r.series.claims, r.series.change, r.series.budget.claim = r.ctx, k, Change{}, 0
}

// enter gets the locks, or what stands for them. If an outage has ended by then, or a key is
// marked as done and the request is not known, it begins anew.
func (r *run) enter() (err error) {
	ctx := r.turn.begin(r.ctx)
	err = errPanicked
	defer func() { r.turn.over(err) }()
	if err = r.pass(ctx); err != nil {
		return r.finish(ending{err: err, outcome: notify.OutcomeRolledBack})
	}
	err = r.acquire(ctx)
	return err
}

// pass waits while the pool of connections is exhausted, which is no wait for a key. A call that holds the
// lock on its key does not wait, nor does a transaction of a Call.
func (r *run) pass(ctx context.Context) error {
	g, p := r.series.gate, r.keys.plan
	if g.open() || r.inside || r.keys.layer.locker.Holds(ctx, p.main) {
		return nil
	}
	pass, waited, err := g.enter(ctx)
	r.series.pass = pass
	p.until = p.until.Add(waited)
	return err
}

func (r *run) acquire(ctx context.Context) error {
	for {
		again, err := r.keys.acquire(ctx)
		if r.request != nil && errors.Is(err, lockengine.ErrMarked) {
			again, err = true, r.marked()
		}
		if !again && err == nil {
			return nil
		}
		if lapse := r.keys.alive(); lapse != nil {
			err = lapse
		}
		if err != nil {
			return r.finish(ending{err: err, outcome: notify.OutcomeRolledBack})
		}
		if gone := firstLoss(r.keys.settle(notify.OutcomeRolledBack, false)); gone != nil {
			r.finished = true
			r.report(*gone, notify.OutcomeRolledBack)
			return gone.err
		}
		r.keys.reset()
	}
}

// marked returns the error of a request whose key is marked as done, or nil if the table does
// not know the request: then the call goes on, and the first layer is not asked again. A mark is
// a hint: a database that was restored has lost the row, and another request may have set it.
func (r *run) marked() error {
	if err := r.request.marked(r.ctx); err != nil {
		return err
	}
	r.keys.unmarked = true
	return nil
}

// leave gives back what enter got and finish has not, for somebody's code may panic, or end its
// goroutine: that of the operation, the driver or the Observer. Then finish reports what that has
// left: a lock failure, a lock that turns out to be gone, or a COMMIT that may be on its way.
func (r *run) leave() {
	last := r.series.last
	defer r.keys.leave(last.outcome)
	defer r.series.pass.use() // it may not have come so far as to begin a transaction
	if !r.finished {
		_ = r.finish(last)
		return
	}
	r.keys.settle(last.outcome, false)
}
