package rabbitmq

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A ping does not wait out the pause between attempts: the next one is to answer
// it, unless it was given up.
func TestPingCutsThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSupervisor(Config{}, nil, nil)
		over, giveUp := context.WithCancel(t.Context())
		giveUp()
		for _, ctx := range []context.Context{over, t.Context()} {
			go func() {
				select {
				case s.pings <- ping{ctx: ctx}:
				case <-t.Context().Done():
				}
			}()
			s.wait(t.Context(), time.Hour)
		}
		if len(s.waiting) != 1 || s.waiting[0].ctx != t.Context() {
			t.Errorf("%d pings wait, want the second", len(s.waiting))
		}
	})
}
