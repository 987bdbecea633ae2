package outbox_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

// A publisher that panics has not taken the event, which is relayed when it panics no more.
func TestPanicOfThePublisher(t *testing.T) {
	t.Parallel()
	var panics atomic.Bool
	var asked, taken atomic.Int64
	panics.Store(true)
	db := openSQLite(t)
	o := open(t, db, outbox.Config{
		Logger: slog.New(slog.DiscardHandler),
		Relay: notify.PublisherFunc(func(context.Context, notify.Event) error {
			asked.Add(1)
			if panics.Load() {
				panic("a publisher")
			}
			taken.Add(1)
			return nil
		}),
	})
	publish(t, o, 1)
	testwait.Until(t, "the relay has tried twice", func() bool { return asked.Load() > 1 })
	panics.Store(false)
	testwait.Until(t, "the table is empty", func() bool { return rows(t, db) == 0 })
	if n := taken.Load(); n != 1 {
		t.Errorf("the event was relayed %d times, want once", n)
	}
}

// A pulse is a publisher whose heartbeats may panic.
type pulse struct {
	recorder

	panics bool
	beats  atomic.Int64
}

// PublishHeartbeat implements heartbeat.Publisher.
func (p *pulse) PublishHeartbeat(context.Context, heartbeat.Heartbeat) error {
	p.beats.Add(1)
	if p.panics {
		panic("a publisher")
	}
	return nil
}

// A heartbeat that panics, also one between two looks at the table, is one that was not sent, and
// a switch that cannot be looked at is not known.
func TestPanicOfAHeartbeat(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]struct {
		publisher bool
		look      func() outbox.Switch
	}{
		"publisher": {publisher: true},
		"switch":    {look: func() outbox.Switch { panic("a switch") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openSQLite(t)
			relay := &pulse{panics: broken.publisher}
			o := open(t, db, outbox.Config{
				Logger: slog.New(slog.DiscardHandler), Service: "orders", Relay: relay,
				HeartbeatInterval: time.Millisecond, Switch: broken.look,
			})
			testwait.Until(t, "it has tried three times", func() bool { return relay.beats.Load() > 2 })
			publish(t, o, 1)
			testwait.Until(t, "the event is relayed", func() bool { return rows(t, db) == 0 })
		})
	}
}
