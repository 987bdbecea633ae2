package guard

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestPatience: an attempt is cut short when it has lasted and a caller does not wait any longer.
func TestPatience(t *testing.T) {
	for name, tt := range map[string]struct {
		leaves, ends, cut time.Duration // since the begin; 0 is never
	}{
		"nobody leaves":          {0, time.Second, 0},
		"early":                  {crewPatience / 2, time.Second, crewPatience},
		"late":                   {2 * crewPatience, time.Second, 2 * crewPatience},
		"early, and it ends":     {crewPatience / 2, crewPatience - 1, 0},
		"after the attempt ends": {crewPatience, crewPatience / 2, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			ctx, p := newPatience(t.Context())
			defer p.end()
			caller, leave := context.WithCancel(t.Context())
			defer leave()
			stop := p.watch(caller)
			time.AfterFunc(tt.ends, stop)
			if tt.leaves > 0 {
				time.AfterFunc(tt.leaves, leave)
			}
			var cut time.Duration
			context.AfterFunc(ctx, func() { cut = time.Since(begun) })
			<-time.After(time.Minute) // of the bubble
			synctest.Wait()
			if cut != tt.cut || impatient(ctx) != (tt.cut > 0) {
				t.Errorf("%s: cut after %v, want %v", name, cut, tt.cut)
			}
		})
	}
}
