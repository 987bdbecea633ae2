package dialect

import (
	"context"
	"time"
)

// Pause lets a moment pass, unless ctx ends.
func Pause(ctx context.Context) error { return Sleep(ctx, 20*time.Millisecond) }

// Sleep waits for d, unless ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
