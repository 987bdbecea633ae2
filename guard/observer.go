package guard

import (
	"context"

	"github.com/belaygo/belay/notify"
)

// An Observer is told of each Do and its steps. guardotel has one that makes
// spans of them. It is safe for concurrent use and does not block.
type Observer interface {
	// Start is called when a step begins. What happens inside, the operation
	// too, gets the context that it returns, a descendant of ctx. The function
	// it returns is called at the end of the step, also when somebody's code
	// panics. ResultOf tells what err means. Its text may hold values of rows. If Start or
	// that function panics, the call ends as at a panic of the operation: what its
	// transaction has become is reported, and the key is released, unless the outcome of
	// its COMMIT is unknown.
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
	StepTransaction Step = "transaction" // inside it, each attempt: a transaction with the operation; for a caller that shares another's (Combine), from its turn to its answer
)

// noObserver is the Observer of a Guard without one.
type noObserver struct{}

func (noObserver) Start(ctx context.Context, _ Step, _ string) (context.Context, func(error)) {
	return ctx, ignore
}

func (noObserver) Trace(context.Context) notify.Trace { return notify.Trace{} }

func ignore(error) {}
