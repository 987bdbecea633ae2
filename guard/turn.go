package guard

import (
	"context"
	"time"
)

// A turn is the wait of a call for its locks, or for its turn to make a change in the
// transaction of another caller, as the Observer and the metrics see it.
type turn struct {
	observer Observer
	metrics  *metrics
	key      string
	begun    time.Time       // when the call did
	waiting  context.Context // of the wait that was begun last
	end      func(error)     // nil unless the call waits
	parted   func(error)     // ends the step in the transaction of another caller, nil if there is none
	waited   bool            // it has, once
	became   string          // with Combine: see combinedShared; empty until there is a transaction
}

// begin notes that the wait begins, and returns the context of what happens in it. It
// returns that of the wait which has begun, if there is one.
func (t *turn) begin(ctx context.Context) context.Context {
	if t.end == nil {
		t.waiting, t.end = t.observer.Start(ctx, StepLock, t.key)
	}
	return t.waiting
}

// over notes that the wait is over, if there is one. The metric has the first one of a call.
func (t *turn) over(err error) {
	end := t.end
	if end == nil {
		return
	}
	t.end = nil
	if !t.waited {
		t.waited = true
		t.metrics.lockWait.Observe(time.Since(t.begun).Seconds())
	}
	end(err)
}

// share notes that the wait for the lock is over, and that for the COMMIT of another caller's
// transaction begins.
func (t *turn) share(ctx context.Context) {
	t.over(nil)
	t.became = combinedShared
	if t.parted == nil {
		_, t.parted = t.observer.Start(ctx, StepTransaction, t.key)
	}
}

// part notes how the call's part in that transaction ends, if it has one.
func (t *turn) part(err error) {
	if end := t.parted; end != nil {
		t.parted = nil
		end(err)
	}
}

// stop notes the end of whatever the call waits for.
func (t *turn) stop(err error) {
	t.over(err)
	t.part(err)
}
