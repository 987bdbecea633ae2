package main

import (
	"context"
	"errors"
	"testing"
)

// TestMoverFails: nobody waits for messages that a mover that has failed will not move.
func TestMoverFails(t *testing.T) {
	errMove := errors.New("no connection")
	_, err := timed(t.Context(),
		func(context.Context) error { return errMove },
		func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	if !errors.Is(err, errMove) {
		t.Errorf("err = %v, want that of the mover", err)
	}
	if _, err := timed(t.Context(),
		func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		func(context.Context) error { return nil }); err != nil {
		t.Errorf("all has arrived: %v", err)
	}
}
