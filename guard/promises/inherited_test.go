package promises_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

// TestLossOfAnInheritedLockBesideAnOwn: an operation that has ended because it lost a lock of its
// own reports another one that its release finds gone, if other callers had that before.
func TestLossOfAnInheritedLockBesideAnOwn(t *testing.T) {
	each(t, func(e *env) {
		g := e.shortGuard()
		owner := func(key string) string {
			now, err := e.Engine().Inspect(bg, key)
			if err != nil {
				e.t.Error(err)
			}
			return now.Owner
		}
		for n := range 1000 { // until the lock is handed over: the other caller may be late
			first, second, ended := fmt.Sprint("a:", n), fmt.Sprint("b:", n), make(chan error)
			inherits := false
			wantNil(e.t, g.Do(bg, second, func(context.Context, *gorm.DB) error {
				before := owner(second)
				loseBoth := func(ctx context.Context, _ *gorm.DB) error {
					if inherits = owner(second) == before; !inherits {
						return nil
					}
					e.Forget(first)
					<-ctx.Done() // the renewal has found that
					e.Forget(second)
					return nil
				}
				go func() { ended <- g.Do(bg, first, loseBoth, guard.Also(second), guard.Wait(time.Minute)) }()
				testwait.Until(e.t, "the first key is held", func() bool { return owner(first) != "" })
				return nil
			}))
			err := <-ended
			if !inherits {
				wantNil(e.t, err)
				continue
			}
			wantIs(e.t, err, guard.ErrLost)
			if ev := e.wantEvent(notify.VerdictLost, notify.OutcomeRolledBack, second); ev.FirstToken == 0 {
				e.t.Errorf("the event is %+v", ev)
			}
			return
		}
		e.t.Error("no lock was handed over")
	})
}
