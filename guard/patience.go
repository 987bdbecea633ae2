package guard

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// crewPatience is how long a transaction runs before a member whose context ends cuts it
// short, for the others to run it again.
const crewPatience = 100 * time.Millisecond

// errImpatient is the cause of an attempt's end: see patience.watch.
var errImpatient = errors.New("guard: a caller who shares the transaction does not wait any longer")

// A patience cuts an attempt short for those who do not wait any longer.
type patience struct {
	begun time.Time
	cut   context.CancelCauseFunc
}

// newPatience returns the patience of an attempt that begins, and its context.
func newPatience(ctx context.Context) (context.Context, *patience) {
	ctx, cut := context.WithCancelCause(ctx)
	return ctx, &patience{begun: time.Now(), cut: cut}
}

// watch cuts the attempt short if it lasts and the caller of ctx does not wait any longer, until
// stop is called.
func (p *patience) watch(ctx context.Context) (stop func()) {
	var stopped atomic.Bool
	stopWatch := context.AfterFunc(ctx, func() {
		time.AfterFunc(crewPatience-time.Since(p.begun), func() {
			if !stopped.Load() {
				p.cut(errImpatient)
			}
		})
	})
	return func() { stopWatch(); stopped.Store(true) }
}

// end ends the context of the attempt.
func (p *patience) end() { p.cut(context.Canceled) }

// impatient reports whether ctx, that of the attempt, was cut short.
func impatient(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errImpatient) }
