package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// together runs the parts until ctx ends or one of them returns, then stops
// the others and waits for all of them, at most stopTimeout.
func together(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	returned := make(chan error, len(parts))
	for _, part := range parts {
		go func() { returned <- part(ctx) }()
	}
	var failed error
	var late <-chan time.Time
	stopping := ctx.Done()
	for running := len(parts); running > 0; {
		select {
		case err := <-returned:
			running--
			if !errors.Is(err, context.Canceled) {
				failed = errors.Join(failed, err)
			}
			cancel()
		case <-stopping:
			stopping, late = nil, time.After(stopTimeout)
		case <-late:
			return errors.Join(failed, fmt.Errorf("stop: not done after %v", stopTimeout))
		}
	}
	return failed
}
