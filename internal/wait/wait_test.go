package wait_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/internal/wait"
)

func TestSleepEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		woken := make(chan struct{})
		close(woken)
		for what, s := range map[string]struct {
			ctx   context.Context
			d     time.Duration
			wake  <-chan struct{}
			takes time.Duration
			err   error
		}{
			"after its time":         {t.Context(), time.Minute, nil, time.Minute, nil},
			"at once":                {t.Context(), 0, nil, 0, nil},
			"with its context":       {ended, math.MaxInt64, nil, 0, context.Canceled},
			"when woken":             {t.Context(), math.MaxInt64, woken, 0, nil},
			"woken after an end":     {ended, math.MaxInt64, woken, 0, context.Canceled},
			"with an end and a time": {ended, 0, nil, 0, context.Canceled},
		} {
			start := time.Now()
			if err := wait.Sleep(s.ctx, s.d, s.wake); !errors.Is(err, s.err) {
				t.Errorf("%s: error %v, want %v", what, err, s.err)
			}
			if took := time.Since(start); took != s.takes {
				t.Errorf("%s: it took %v, want %v", what, took, s.takes)
			}
		}
	})
}

func TestWakesAddUp(t *testing.T) {
	ch := make(chan struct{}, 1)
	wait.Wake(ch)
	wait.Wake(ch) // does not block
	if err := wait.Sleep(t.Context(), math.MaxInt64, ch); err != nil || len(ch) != 0 {
		t.Errorf("%d wake-ups are left (%v), want none", len(ch), err)
	}
}

// late is a context that has not noticed that its deadline has passed.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Nanosecond), true }

func TestErrKnowsTheClock(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	if err := wait.Err(ctx); err != nil {
		t.Errorf("before the deadline: %v", err)
	}
	if err := wait.Err(late{ctx}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	cancel()
	if err := wait.Err(late{ctx}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the cancellation: %v", err)
	}
}
