package guard

import (
	"context"
	"errors"
	"testing"
	"time"
)

func stays() bool { return false }
func quits() bool { return true }

// TestWaiterEnds: how a wait ends depends on where the waiter is.
func TestWaiterEnds(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx  context.Context //nolint:containedctx // of a case
		quit func() bool
		want error
	}{
		"in its line":                        {t.Context(), quits, ErrBusy},
		"in its line, and its context ended": {over, quits, context.Canceled},
		"in a crew that does not use it yet": {over, stays, context.Canceled},
	} {
		w := newWaiter(tt.ctx, "k", nil, time.Now())
		if _, err := w.await(over, tt.quit); !errors.Is(err, tt.want) {
			t.Errorf("%s: error is %v, want %v", name, err, tt.want)
		}
	}
}

// TestWaiterIsUsed: a waiter gets its answer if the crew may touch its rows, whatever has ended.
func TestWaiterIsUsed(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	w := newWaiter(over, "k", nil, time.Now())
	if !w.use() || w.leave() || w.gone() {
		t.Error("a waiter has left that is used")
	}
	go w.signal(signal{next: turnDone, err: ErrStale})
	if s, err := w.await(over, stays); err != nil || s.next != turnDone || !errors.Is(s.err, ErrStale) {
		t.Errorf("the signal is %+v, the error %v", s, err)
	}
	w.spare()
	if !w.leave() || !w.gone() || w.use() {
		t.Error("a waiter that is not used any longer has not left for good")
	}
}
