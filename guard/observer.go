package guard

import (
	"context"
	"strings"

	"github.com/belaygo/belay/notify"
)

// An Observer is told of each Do and its steps. guardotel has one that makes
// spans of them. It is safe for concurrent use and does not block.
type Observer interface {
	// Start is called when a step begins. What happens inside, the operation
	// too, gets the context that it returns, a descendant of ctx. The function
	// it returns is called at the end of the step, also when somebody's code
	// panics. ResultOf tells what err means. Its text may hold values of rows.
	Start(ctx context.Context, step Step, key string) (context.Context, func(err error))

	// Trace returns the W3C trace context that ctx carries, for events; the zero
	// Trace if there is none.
	Trace(ctx context.Context) notify.Trace
}

// A Step is what an Observer is told of.
type Step string

const (
	StepDo          Step = "do"          // a whole Do
	StepLock        Step = "lock"        // inside it, getting the lock
	StepTransaction Step = "transaction" // inside it, each attempt: a transaction with the operation
)

func ignore(error) {}

func (g *Guard) observe(ctx context.Context, s Step, key string) (context.Context, func(error)) {
	if g.cfg.Observer == nil {
		return ctx, ignore
	}
	return g.cfg.Observer.Start(ctx, s, key)
}

// trace adds the trace of ctx to an event.
func (g *Guard) trace(ctx context.Context, ev *notify.Event) {
	if g.cfg.Observer == nil {
		return
	}
	ev.Trace = g.cfg.Observer.Trace(ctx)
	if parts := strings.Split(ev.Trace.Parent, "-"); len(parts) == 4 {
		ev.TraceID = parts[1]
	}
}
