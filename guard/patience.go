package guard

import (
	"context"
	"sync/atomic"
	"time"
)

// crewPatience is how long a transaction runs before a member whose context ends cuts it
// short, for the others to run it again.
const crewPatience = 100 * time.Millisecond

// watch cuts the transaction short if it lasts and m does not wait any longer, until stop is
// called.
func (k *crew) watch(m *member) (stop func()) {
	begun, cut := k.begun, k.cut
	var stopped atomic.Bool
	stopWatch := context.AfterFunc(m.ctx, func() {
		time.AfterFunc(crewPatience-time.Since(begun), func() {
			if !stopped.Load() {
				cut(errImpatient)
			}
		})
	})
	return func() { stopWatch(); stopped.Store(true) }
}
