package outbox_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify/outbox"
)

// Heartbeats count the messages that wait. They are sent without the counts if these cannot be
// counted, panics, hangs, or makes no sense.
func TestHeartbeatsCountMessages(t *testing.T) {
	t.Parallel()
	want := outbox.Messages{Table: "shop.belay_message", Waiting: 3, Oldest: time.Minute, Parked: 2, Dead: 2, Undecided: 1, OldestDead: time.Hour}
	for what, count := range map[string]func(ctx context.Context) (outbox.Messages, error){
		"counted": nil,
		"fails":   func(context.Context) (outbox.Messages, error) { return want, errors.New("no table") },
		"panics":  func(context.Context) (outbox.Messages, error) { panic("a driver") },
		"hangs":   func(ctx context.Context) (outbox.Messages, error) { <-ctx.Done(); return want, ctx.Err() },
		"invalid": func(context.Context) (outbox.Messages, error) { return outbox.Messages{Waiting: 1}, nil },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			db := openSQLite(t)
			var relay beating
			var spoilt atomic.Bool
			open(t, db, outbox.Config{
				Relay: &relay, Service: "orders", HeartbeatInterval: time.Millisecond,
				Messages: func(ctx context.Context) (outbox.Messages, error) {
					if spoilt.Load() && count != nil {
						return count(ctx)
					}
					return want, nil
				},
			}.With(outbox.Limits{PollInterval: time.Millisecond}))
			last := func() heartbeat.Messages {
				beats := relay.all()
				if len(beats) == 0 {
					return heartbeat.Messages{}
				}
				return beats[len(beats)-1].Messages
			}
			testwait.Until(t, "a heartbeat counts messages", func() bool { return last() == heartbeat.Messages(want) })
			if spoilt.Store(true); count != nil {
				n := len(relay.all())
				testwait.Until(t, "a heartbeat comes without", func() bool { return len(relay.all()) > n && last() == heartbeat.Messages{} })
			}
		})
	}
}
