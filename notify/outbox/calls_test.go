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

// Heartbeats count the calls that are pending, whatever becomes of the count of messages. They are sent
// without if the calls cannot be counted.
func TestHeartbeatsCountCalls(t *testing.T) {
	t.Parallel()
	want := outbox.Calls{Table: "shop.belay_pending", Pending: 3, Oldest: time.Minute, Undecided: 1, OldestUndecided: time.Hour}
	for what, count := range map[string]func() (outbox.Calls, error){
		"fails":   func() (outbox.Calls, error) { return want, errors.New("no table") },
		"panics":  func() (outbox.Calls, error) { panic("a driver") },
		"invalid": func() (outbox.Calls, error) { return outbox.Calls{Pending: 1}, nil },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var relay beating
			var spoilt atomic.Bool
			open(t, openSQLite(t), outbox.Config{
				Relay: &relay, Service: "orders", HeartbeatInterval: time.Millisecond,
				Messages: func(context.Context) (outbox.Messages, error) { return outbox.Messages{}, errors.New("no table") },
				Calls: func(context.Context) (outbox.Calls, error) {
					if spoilt.Load() {
						return count()
					}
					return want, nil
				},
			}.With(outbox.Limits{PollInterval: time.Millisecond}))
			last := func() heartbeat.Calls {
				beats := relay.all()
				if len(beats) == 0 {
					return heartbeat.Calls{}
				}
				return beats[len(beats)-1].Calls
			}
			testwait.Until(t, "a heartbeat counts calls", func() bool { return last() == heartbeat.Calls(want) })
			spoilt.Store(true)
			n := len(relay.all())
			testwait.Until(t, "a heartbeat comes without", func() bool { return len(relay.all()) > n && last() == heartbeat.Calls{} })
		})
	}
}
