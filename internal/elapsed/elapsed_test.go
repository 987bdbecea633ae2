package elapsed_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/internal/elapsed"
)

// TestSince has a row for each of the package comment.
func TestSince(t *testing.T) {
	for _, tt := range []struct {
		name               string
		goes, step, passed time.Duration
	}{
		{"nothing", time.Second, 0, time.Second},
		{"suspended", time.Second, time.Hour, time.Second + time.Hour},
		{"set forward", time.Second, time.Minute, time.Second + time.Minute},
		{"set back", time.Second, -time.Minute, time.Second},
		{"suspended, and set back by less", time.Second, time.Hour - time.Minute, time.Second + time.Hour - time.Minute},
		{"suspended, and set back by more", time.Second, time.Hour - 2*time.Hour, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c elapsed.Clock
				begun := time.Now()
				<-time.After(tt.goes)
				c.Step(tt.step)
				if got := c.Since(begun); got != tt.passed {
					t.Errorf("%v have passed, want %v", got, tt.passed)
				}
			})
		})
	}
}
