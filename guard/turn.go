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
