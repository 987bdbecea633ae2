package versus

import (
	"testing"
	"time"

	"github.com/belaygo/belay/benchmark/internal/shop"
)

// Who waits longest gets his answer after the time is up: he counts among the
// waits, and not in the rate.
func TestLateAnswers(t *testing.T) {
	over := job{From: time.Now().Add(-time.Hour), To: time.Now()}
	still := job{From: over.From, To: time.Now().Add(time.Hour)}
	for name, tt := range map[string]struct {
		job              job
		result           shop.Result
		took, late, errs int
	}{
		"in time":         {still, shop.Done, 1, 0, 0},
		"late":            {over, shop.Done, 0, 1, 0},
		"never got it":    {over, shop.Stale, 0, 1, 0},
		"failed":          {still, shop.Failed, 0, 0, 1},
		"failed late":     {over, shop.Failed, 0, 0, 1},
		"before the time": {job{From: still.To, To: still.To}, shop.Done, 0, 0, 0},
	} {
		var w caller
		w.note(tt.job, Case{name: hotCASRetry}, shop.Answer{Result: tt.result}, time.Now(), time.Now())
		if len(w.took) != tt.took || len(w.late) != tt.late || int(w.Errors) != tt.errs {
			t.Errorf("%s: %d in time, %d late, %d errors", name, len(w.took), len(w.late), w.Errors)
		}
	}
}
