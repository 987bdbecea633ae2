package guard_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testwait"
)

// TestCombineAnswersAll: wherever the time for the changes ends, each caller gets an
// answer, and its change is made once.
func TestCombineAnswersAll(t *testing.T) {
	each(t, func(e *env) {
		const callers, rounds = 32, 20
		e.create(&Stock{ID: 1, Left: callers * rounds})
		var answered atomic.Int64
		for i := range rounds {
			e.TurnLimit(time.Duration(i) * 10 * time.Microsecond)
			for range callers {
				go func() {
					defer answered.Add(1)
					if err := e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take), guard.Wait(time.Minute), guard.Combine()); err != nil {
						e.t.Error(err)
					}
				}()
			}
			testwait.Until(e.t, "all have an answer", func() bool { return answered.Load() == int64(i+1)*callers })
		}
		if s := e.stock(1); s.Left != 0 || s.Version != callers*rounds+1 {
			e.t.Errorf("the stock is %+v", s)
		}
	})
}
