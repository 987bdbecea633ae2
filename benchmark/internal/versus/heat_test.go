package versus

import (
	"testing"
	"time"

	"github.com/belaygo/belay/benchmark/internal/shop"
)

// Who waits longest gets his answer after the time is up: he counts among the
// waits, and not in the rate.
func TestLateAnswers(t *testing.T) {
	over := heat{from: time.Now().Add(-time.Hour), to: time.Now()}
	still := heat{from: over.from, to: time.Now().Add(time.Hour)}
	for name, tt := range map[string]struct {
		heat             heat
		result           shop.Result
		took, late, errs int
	}{
		"in time":         {still, shop.Done, 1, 0, 0},
		"late":            {over, shop.Done, 0, 1, 0},
		"never got it":    {over, shop.Stale, 0, 1, 0},
		"failed":          {still, shop.Failed, 0, 0, 1},
		"failed late":     {over, shop.Failed, 0, 0, 1},
		"before the time": {heat{from: still.to, to: still.to}, shop.Done, 0, 0, 0},
	} {
		var w caller
		w.note(tt.heat, Case{name: casRetry}, shop.Answer{Result: tt.result}, time.Now(), time.Now())
		if len(w.took) != tt.took || len(w.late) != tt.late || int(w.errs) != tt.errs {
			t.Errorf("%s: %d in time, %d late, %d errors", name, len(w.took), len(w.late), w.errs)
		}
	}
}
