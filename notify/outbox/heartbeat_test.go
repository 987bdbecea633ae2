package outbox_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify/outbox"
)

// A beating recorder takes heartbeats as well.
type beating struct {
	recorder

	mu    sync.Mutex
	beats []heartbeat.Heartbeat
	err   error
}

func (b *beating) PublishHeartbeat(_ context.Context, h heartbeat.Heartbeat) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.beats = append(b.beats, h)
	return b.err
}

func (b *beating) all() []heartbeat.Heartbeat {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]heartbeat.Heartbeat(nil), b.beats...)
}

func TestRelaySendsHeartbeats(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		var relay beating
		relay.failWith(down)
		o := open(t, db, outbox.Config{
			Relay: &relay, Service: "orders", Instance: "orders-1",
			HeartbeatInterval: 20 * time.Millisecond,
		}.With(outbox.Limits{PollInterval: 5 * time.Millisecond}))
		publish(t, o, 1)
		testwait.Until(t, "one tells of the backlog", func() bool {
			beats := relay.all()
			return len(beats) > 2 && beats[len(beats)-1].Backlog == 1
		})
		ids := map[string]bool{}
		for _, h := range relay.all() {
			if err := h.Validate(); err != nil || h.Service != "orders" || h.Instance != "orders-1" || h.Interval != 20*time.Millisecond {
				t.Errorf("%+v: %v", h, err)
			}
			ids[h.ID] = true
		}
		if len(ids) < 3 {
			t.Errorf("heartbeats share ids: %v", ids)
		}
	})
}

// The relay sleeps for longer than from one heartbeat to the next.
func TestHeartbeatsOfAnIdleRelay(t *testing.T) {
	db := openSQLite(t)
	var relay beating
	open(t, db, outbox.Config{Relay: &relay, Service: "orders", HeartbeatInterval: time.Millisecond}.With(outbox.Limits{PollInterval: time.Hour}))
	testwait.Until(t, "they go on", func() bool { return len(relay.all()) > 2 })
}

func TestHeartbeatsAreRare(t *testing.T) {
	db := openSQLite(t)
	var relay beating
	o := open(t, db, outbox.Config{Relay: &relay, Service: "orders", HeartbeatInterval: time.Hour}.With(outbox.Limits{PollInterval: time.Millisecond}))
	publish(t, o, 1, 2, 3)
	testwait.Until(t, "the events are relayed", func() bool { return relay.tookAll(1, 2, 3) })
	if n := len(relay.all()); n != 1 {
		t.Errorf("%d heartbeats, want the first one alone", n)
	}
	metrics(t, o, `belay_outbox_heartbeats_total{name="outbox"} 1`)
}

func TestWithoutAServiceThereAreNoHeartbeats(t *testing.T) {
	db := openSQLite(t)
	var relay beating
	o := open(t, db, outbox.Config{Relay: &relay, HeartbeatInterval: time.Millisecond})
	publish(t, o, 1)
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(relay.all()); n != 0 {
		t.Errorf("%d heartbeats", n)
	}
}

// Heartbeats that fail do not hold up events.
func TestFailingHeartbeatsDoNoHarm(t *testing.T) {
	db := openSQLite(t)
	relay := beating{err: errDown}
	o := open(t, db, outbox.Config{Relay: &relay, Service: "orders", HeartbeatInterval: time.Nanosecond})
	publish(t, o, 1)
	if err := o.Close(t.Context()); err != nil || !relay.tookAll(1) {
		t.Errorf("relayed %v, err %v", relay.took(1), err)
	}
	metrics(t, o, `belay_outbox_heartbeats_total{name="outbox"} 0`)
}
