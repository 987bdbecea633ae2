package versus

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belaygo/belay/benchmark/internal/shop"
)

// Who waits longest gets his answer after the time is up: he counts among the
// waits, and not in the rate.
func TestLateAnswers(t *testing.T) {
	over := heat{from: time.Now().Add(-time.Hour), to: time.Now()}
	still := heat{from: over.from, to: time.Now().Add(time.Hour)}
	answers := func(err error) deed {
		return func(context.Context, heat, int64) (bool, error) { return err == nil, err }
	}
	for name, tt := range map[string]struct {
		heat             heat
		err              error
		took, late, errs int
	}{
		"in time":         {still, nil, 1, 0, 0},
		"late":            {over, nil, 0, 1, 0},
		"never got it":    {over, shop.ErrConflict, 0, 1, 0},
		"failed":          {still, errors.New("broken"), 0, 0, 1},
		"failed late":     {over, errors.New("broken"), 0, 0, 1},
		"before the time": {heat{from: still.to, to: still.to}, nil, 0, 0, 0},
	} {
		var w caller
		w.ask(t.Context(), tt.heat, answers(tt.err), 0)
		if len(w.took) != tt.took || len(w.late) != tt.late || int(w.errs) != tt.errs {
			t.Errorf("%s: %d in time, %d late, %d errors", name, len(w.took), len(w.late), w.errs)
		}
	}
}
