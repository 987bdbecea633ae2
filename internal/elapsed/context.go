package elapsed

import (
	"context"
	"errors"
	"math"
	"time"
)

// look is how often a context looks at its clock by itself.
const look = 100 * time.Millisecond

// WithTimeout returns a copy of ctx that ends when d has passed, like that of context.WithTimeout, and counts
// the time while the host was suspended. When that goes on, whoever asks the context, or derives another one
// from it, finds that it has ended; contexts that were derived before end within a moment.
func (c *Clock) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	begun, step := time.Now(), c.step.Load()
	ctx, stop := context.WithTimeout(ctx, d)
	ctx, cancel := context.WithCancelCause(ctx)
	b := &bounded{Context: ctx, cancel: cancel}
	b.passed = func() bool { return since(begun, c.step.Load()-step) >= d }
	b.timer = time.AfterFunc(math.MaxInt64, b.watch)
	b.timer.Reset(look) // behind the assignment, which watch reads
	return b, func() {
		b.timer.Stop()
		stop()
	}
}

// A bounded is a context that ends by a clock.
type bounded struct {
	context.Context

	passed func() bool
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// Done implements context.Context.
func (b *bounded) Done() <-chan struct{} {
	b.check()
	return b.Context.Done()
}

// Err implements context.Context.
func (b *bounded) Err() error {
	b.check()
	if errors.Is(context.Cause(b.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return b.Context.Err()
}

func (b *bounded) check() {
	if b.passed() {
		b.cancel(context.DeadlineExceeded)
	}
}

func (b *bounded) watch() {
	if b.check(); b.Context.Err() == nil {
		b.timer.Reset(look)
	}
}
