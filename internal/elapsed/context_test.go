package elapsed_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/internal/elapsed"
)

// TestWithTimeout: a context ends when its time has passed by either clock, for those who ask it at once,
// and for those who wait for its end.
func TestWithTimeout(t *testing.T) {
	const limit = time.Minute
	for _, tt := range []struct {
		name  string
		step  time.Duration
		lasts time.Duration // for those who wait
	}{
		{"nothing", 0, limit},
		{"suspended", time.Hour, 100 * time.Millisecond},
		{"suspended for less", limit / 2, limit / 2},
		{"set back", -time.Hour, limit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c elapsed.Clock
				c.Step(2 * time.Hour) // before it begins
				begun := time.Now()
				ctx, cancel := c.WithTimeout(t.Context(), limit)
				defer cancel()
				child, stop := context.WithCancel(ctx)
				defer stop()
				if err := errors.Join(ctx.Err(), child.Err()); err != nil {
					t.Fatalf("it has ended when it begins: %v", err)
				}
				c.Step(tt.step)
				<-child.Done()
				if lasted := time.Since(begun); lasted != tt.lasts {
					t.Errorf("it has lasted %v, want %v", lasted, tt.lasts)
				}
				wantExceeded(ctx, t)
			})
		})
	}
}

// TestWithTimeoutIsAsked: nobody waits until the context looks at the clock.
func TestWithTimeoutIsAsked(t *testing.T) {
	for name, ask := range map[string]func(ctx context.Context, t *testing.T){
		"Err": wantExceeded,
		"Done": func(ctx context.Context, t *testing.T) {
			t.Helper()
			select {
			case <-ctx.Done():
			default:
				t.Error("it goes on")
			}
		},
		"another one": func(ctx context.Context, t *testing.T) {
			t.Helper()
			child, stop := context.WithTimeout(ctx, time.Hour)
			defer stop()
			wantExceeded(child, t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c elapsed.Clock
				ctx, cancel := c.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				c.Step(time.Minute)
				ask(ctx, t)
			})
		})
	}
}

// TestWithTimeoutIsCanceled: by its function, or with the context that it is a copy of.
func TestWithTimeoutIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c elapsed.Clock
		outer, end := context.WithCancel(t.Context())
		first, cancel := c.WithTimeout(outer, time.Minute)
		second, stop := c.WithTimeout(outer, time.Minute)
		defer stop()
		cancel()
		if err := first.Err(); !errors.Is(err, context.Canceled) || second.Err() != nil {
			t.Errorf("the first one's error is %v, and the second one's %v", err, second.Err())
		}
		end()
		if err := second.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("the second one's error is %v", err)
		}
	})
}

func wantExceeded(ctx context.Context, t *testing.T) {
	t.Helper()
	if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		t.Errorf("its error is %v, of the cause %v", err, context.Cause(ctx))
	}
}
