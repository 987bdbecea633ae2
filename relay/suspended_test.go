package relay_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/relay"
)

// TestSuspendedHost: the host is suspended between two messages of a key, for longer than the lease of
// the lane or than Until. The monotonic clock stands meanwhile. Another relay may have sent the second
// one, and the provider may have forgotten its id: this relay does not call.
func TestSuspendedHost(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	for name, tt := range map[string]struct {
		lease, until, step time.Duration
		again              int // calls for the second message, when the clocks agree again
	}{
		"behind the lease":          {2 * time.Second, 24 * time.Hour, time.Hour, 1},
		"behind Until":              {50 * minute, 10 * minute, 20 * minute, 0},
		"the clock is set back":     {50 * minute, 10 * minute, -20 * minute, 1},
		"the clock is set a little": {50 * minute, 10 * minute, 5 * minute, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, db *gorm.DB) {
				var r recorder
				begun, suspended := make(chan struct{}), make(chan struct{})
				cfg := relay.WithLease(relay.Config{Routes: []relay.Route{{Topic: "sale", Until: tt.until, Handle: func(ctx context.Context, m relay.Message) error {
					if m.ID == "a/0" {
						close(begun)
						<-suspended
					}
					return r.Publish(ctx, m)
				}}}}, tt.lease)
				store(t, db, rowsOf("a", 2)...)
				running := start(t, db, cfg)
				<-begun
				running.StepClock(tt.step)
				close(suspended)
				terms := func() int { return count(t, db, "belay_lane WHERE term >= 3") }
				late := tt.step > tt.until || tt.step > tt.lease
				testwait.Until(t, "the first message is sent, and the next one, or the time for it has passed", func() bool {
					switch {
					case !late || len(r.tries()) > 1:
						return len(r.tries()) > 1
					case tt.step > tt.until:
						return count(t, db, "belay_parked WHERE dead = 2") == 1
					}
					return count(t, db, "belay_message") == 1 && terms() > 0
				})
				if got := r.tries(); late && !slices.Equal(got, []string{"a/0"}) {
					t.Fatalf("called for %v, want the first message alone", got)
				}
				running.StepClock(-tt.step)
				if tt.again > 0 {
					emptied(t, db)
				}
				if n := len(r.tries()); n != 1+tt.again {
					t.Errorf("%d calls: %v", n, r.tries())
				}
			})
		})
	}
}
