package relay_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/relay"
)

// TestSuspendedHost: the host is suspended between two messages of a key, for longer than the lease of
// the lane or than Until. The monotonic clock stands meanwhile. Another relay may have sent the second
// one, and the provider may have forgotten its id: this relay does not call. Whether the message is behind
// Until the clock of the database decides: who sets that of the host makes no dead letter.
func TestSuspendedHost(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	for name, tt := range map[string]struct {
		lease, until, step time.Duration
		ages               bool // so does the message, by the clock of the database
		again              int  // calls for the second message, when the clocks agree again
	}{
		"behind the lease":          {2 * time.Second, 24 * time.Hour, time.Hour, true, 1},
		"behind Until":              {50 * minute, 10 * minute, 20 * minute, true, 0},
		"the clock is set forward":  {50 * minute, 10 * minute, 20 * minute, false, 1},
		"the clock is set back":     {50 * minute, 10 * minute, -20 * minute, false, 1},
		"the clock is set a little": {50 * minute, 10 * minute, 5 * minute, false, 1},
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
				if tt.ages {
					testdb.WantNil(t, db.Exec("UPDATE belay_message SET created_at = created_at - ?", tt.step.Milliseconds()).Error)
				}
				close(suspended)
				terms := func() int { return count(t, db, "belay_lane WHERE term >= 3") }
				dead := func() int { return count(t, db, "belay_parked WHERE dead = 2") }
				reads := func() int { return count(t, db, "belay_relay WHERE beats >= 3") } // of the second message, again and again
				late := tt.step > tt.until || tt.step > tt.lease
				testwait.Until(t, "the first message is sent, and the next one, or the time for it has passed", func() bool {
					switch {
					case !late || len(r.tries()) > 1:
						return len(r.tries()) > 1
					case tt.step > tt.until && tt.ages:
						return dead() == 1
					case tt.step > tt.until:
						return dead() == 1 || count(t, db, "belay_message") == 1 && reads() == 1
					}
					return count(t, db, "belay_message") == 1 && terms() > 0
				})
				if got := r.tries(); late && !slices.Equal(got, []string{"a/0"}) {
					t.Fatalf("called for %v, want the first message alone", got)
				}
				running.StepClock(-tt.step)
				if n := dead(); n != 1-tt.again {
					t.Fatalf("%d dead letters, want %d", n, 1-tt.again)
				}
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

// TestSuspendedInCall: the host is suspended while a message is sent, until the provider may have forgotten
// its id. The context of the call has ended when it goes on, also for a client that had begun to wait.
func TestSuspendedInCall(t *testing.T) {
	t.Parallel()
	const until, suspended = 10 * time.Minute, 20 * time.Minute
	each(t, func(t *testing.T, db *gorm.DB) {
		var running *relay.Relay
		var r recorder
		began, ended := make(chan struct{}), make(chan error, 1)
		cfg := relay.WithLease(relay.Config{Routes: []relay.Route{{Topic: "sale", Until: until, Timeout: time.Minute, Handle: func(ctx context.Context, m relay.Message) error {
			<-began
			waits, stop := context.WithCancel(ctx)
			defer stop()
			running.StepClock(suspended)
			defer running.StepClock(-suspended)
			testdb.WantNil(t, db.Exec("UPDATE belay_message SET created_at = created_at - ?", suspended.Milliseconds()).Error)
			ended <- ctx.Err()
			testwait.Until(t, "whoever waits has noticed", func() bool { return waits.Err() != nil })
			return errors.Join(r.Publish(ctx, m), ctx.Err())
		}}}}, time.Hour)
		store(t, db, row("a", 0))
		running = start(t, db, cfg)
		close(began)
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the context's error is %v, want that its time has passed", err)
		}
		testwait.Until(t, "the message is a dead letter", func() bool { return count(t, db, "belay_parked WHERE dead = 2") == 1 })
		if got := r.tries(); len(got) != 1 {
			t.Errorf("calls are %v, want one", got)
		}
	})
}
