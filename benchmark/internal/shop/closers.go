package shop

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Closers are what ends that which was begun.
type Closers []func(context.Context) error

// Later adds f. What was added last is called first.
func (c *Closers) Later(f func(context.Context) error) { *c = append(*c, f) }

// CloseIf closes all if *err is set, and adds what goes wrong. It is for what opens
// things one after the other.
func (c *Closers) CloseIf(ctx context.Context, err *error) {
	if *err != nil {
		*err = errors.Join(*err, c.Close(ctx))
	}
}

// Close calls all once, until the deadline of ctx, or for two minutes if it has none
// or has ended. That ctx is canceled does not matter.
func (c *Closers) Close(ctx context.Context) error {
	deadline, ok := ctx.Deadline()
	if !ok || ctx.Err() != nil {
		deadline = time.Now().Add(2 * time.Minute)
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()
	var errs []error
	for _, f := range slices.Backward(*c) {
		errs = append(errs, f(ctx))
	}
	*c = nil
	return errors.Join(errs...)
}
