package grpcguard

import (
	"errors"
	"fmt"
	"testing"

	"github.com/belaygo/belay/guard"
)

// TestWhoseErrorItIs: an error that says what became of the call is not the handler's, though it
// wraps what the handler returned. A cluster outruns a call so: its handler meets a deadlock, as
// another node has served the same request.
func TestWhoseErrorItIs(t *testing.T) {
	c := &served{failed: &handlerError{errors.New("deadlock")}}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{c.failed, true},
		{fmt.Errorf("the operation: %w", c.failed), true},
		{fmt.Errorf("%w: %w", guard.ErrLost, c.failed), false},
		{fmt.Errorf("%w: %w", guard.ErrDuplicate, c.failed), false},
		{fmt.Errorf("%w: %w", guard.ErrMismatch, c.failed), false},
		{errors.New("another"), false},
	} {
		if got := c.isHandlers(tt.err); got != tt.want {
			t.Errorf("%v is the handler's: %t, want %t", tt.err, got, tt.want)
		}
	}
	if new(served).isHandlers(errors.New("another")) {
		t.Error("an error is that of a handler that has returned none")
	}
}
